package render_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/render"
)

type thing struct{ name, word, long string }

var columns = []render.Column[thing]{
	{Name: "NAME", Value: func(t thing) string { return t.name }},
	{Name: "STATUS", Word: func(t thing) string { return t.word }, Value: func(t thing) string { return t.word }},
	{Name: "LONG", Flex: true, Value: func(t thing) string { return t.long }},
	{Name: "MORE", Wide: true, Value: func(t thing) string { return "m" }},
}

var things = []thing{{"a", "failed", strings.Repeat("x", 50)}, {"bcd", "ok", "\x1b[2J"}}

const doc = `{"things":[{"n":9007199254740993},{"n":2}]}`

func rows(t *testing.T, p render.Printer) (string, error) {
	t.Helper()
	var out bytes.Buffer
	p.Out = &out
	err := render.Rows(&p, []byte(doc), things, func(x thing) []byte { return []byte(`{ "name": "` + x.name + `" }`) }, func(x thing) string { return x.name }, columns)
	return out.String(), err
}

func TestRows_AreWrittenInEachFormat(t *testing.T) {
	t.Parallel()
	query, err := render.CompileQuery(".things[].n")
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		p    render.Printer
		want string
	}{
		"table":   {render.Printer{Format: render.Table}, "NAME  STATUS  LONG\na     failed  " + things[0].long + "\nbcd   ok      \\u001b[2J\n"},
		"cut":     {render.Printer{Format: render.Table, Width: 30}, "NAME  STATUS  LONG\na     failed  xxxxxxxxxxxxxxx…\nbcd   ok      \\u001b[2J\n"},
		"colored": {render.Printer{Format: render.Table, Color: true, Columns: []string{"status"}}, "STATUS\n\x1b[31mfailed\x1b[0m\n\x1b[32mok\x1b[0m\n"},
		"wide":    {render.Printer{Format: render.Wide, Columns: []string{"more", "NAME"}}, "MORE  NAME\nm     a\nm     bcd\n"},
		"json":    {render.Printer{Format: render.JSON}, "{\n  \"things\": [\n    {\n      \"n\": 9007199254740993\n    },\n    {\n      \"n\": 2\n    }\n  ]\n}\n"},
		"jsonl":   {render.Printer{Format: render.JSONL}, "{\"name\":\"a\"}\n{\"name\":\"bcd\"}\n"},
		"yaml":    {render.Printer{Format: render.YAML}, "things:\n  - n: 9007199254740993\n  - n: 2\n"},
		"name":    {render.Printer{Format: render.Name}, "a\nbcd\n"},
		"query":   {render.Printer{Format: render.JSONL, Query: query}, "9007199254740993\n2\n"},
	} {
		got, err := rows(t, tc.p)
		require.NoError(t, err, name)
		require.Equal(t, tc.want, got, name)
	}
	_, err = rows(t, render.Printer{Format: render.Table, Columns: []string{"ghost"}})
	require.EqualError(t, err, `--columns: no column "ghost"; there are name, status, long, more`)
}

func TestCompileQuery_RefusesWhatIsNoQuery(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{".[", "nosuchfunction", `import "x" as x; .`} {
		_, err := render.CompileQuery(bad)
		require.ErrorContains(t, err, "--query", bad)
	}
	q, err := render.CompileQuery(".a.b")
	require.NoError(t, err)
	require.ErrorContains(t, q([]byte(`{"a":[1]}`), func([]byte) error { return nil }), "--query")
	env, err := render.CompileQuery("env, $ENV")
	require.NoError(t, err)
	var got []string
	require.NoError(t, env([]byte(`{}`), func(b []byte) error { got = append(got, string(b)); return nil }))
	require.Equal(t, []string{"{}", "{}"}, got, "the environment holds credentials, and is not to be asked")
}

func TestParseFormat_NamesThem(t *testing.T) {
	t.Parallel()
	_, err := render.ParseFormat("xml")
	require.EqualError(t, err, `--output "xml": want table, wide, json, jsonl, yaml, name`)
	for _, f := range render.Formats {
		got, err := render.ParseFormat(string(f))
		require.NoError(t, err)
		require.Equal(t, f, got)
	}
}
