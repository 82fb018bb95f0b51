package render_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/exit"
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
	query, err := render.CompileQuery(t.Context(), ".things[].n")
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		p    render.Printer
		want string
	}{
		"table": {
			render.Printer{Format: render.Table},
			"NAME  STATUS  LONG\na     failed  " + things[0].long + "\nbcd   ok      \\u001b[2J\n",
		},
		"cut": {
			render.Printer{Format: render.Table, Width: 30},
			"NAME  STATUS  LONG\na     failed  xxxxxxxxxxxxxxx…\nbcd   ok      \\u001b[2J\n",
		},
		"colored": {
			render.Printer{Format: render.Table, Color: true, Columns: []string{"status"}},
			"STATUS\n\x1b[31mfailed\x1b[0m\n\x1b[32mok\x1b[0m\n",
		},
		"wide": {render.Printer{Format: render.Wide, Columns: []string{"more", "NAME"}}, "MORE  NAME\nm     a\nm     bcd\n"},
		"json": {
			render.Printer{Format: render.JSON},
			"{\n  \"things\": [\n    {\n      \"n\": 9007199254740993\n    },\n    {\n      \"n\": 2\n    }\n  ]\n}\n",
		},
		"jsonl": {render.Printer{Format: render.JSONL}, "{\"name\":\"a\"}\n{\"name\":\"bcd\"}\n"},
		"yaml":  {render.Printer{Format: render.YAML}, "things:\n  - n: 9007199254740993\n  - n: 2\n"},
		"name":  {render.Printer{Format: render.Name}, "a\nbcd\n"},
		"query": {render.Printer{Format: render.JSONL, Query: query}, "9007199254740993\n2\n"},
	} {
		got, err := rows(t, tc.p)
		require.NoError(t, err, name)
		require.Equal(t, tc.want, got, name)
	}
	_, err = rows(t, render.Printer{Format: render.Table, Columns: []string{"ghost"}})
	require.EqualError(t, err, `--columns: unknown column "ghost"; want name, status, long, more`)
}

func TestCompileQuery_RejectsInvalidQueries(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{".[", "nosuchfunction", `import "x" as x; .`} {
		_, err := render.CompileQuery(t.Context(), bad)
		require.ErrorContains(t, err, "--query", bad)
		require.Equal(t, exit.Usage, exit.Status(err))
	}
	q, err := render.CompileQuery(t.Context(), ".a.b")
	require.NoError(t, err)
	err = q([]byte(`{"a":[1]}`), func([]byte) error { return nil })
	require.ErrorContains(t, err, "--query")
	require.Equal(t, exit.Usage, exit.Status(err))
	env, err := render.CompileQuery(t.Context(), "env, $ENV")
	require.NoError(t, err)
	var got []string
	require.NoError(t, env([]byte(`{}`), func(b []byte) error { got = append(got, string(b)); return nil }))
	require.Equal(t, []string{"{}", "{}"}, got, "queries cannot read the environment, which holds credentials")
}

// Errors in long expressions need a position.
func TestCompileQuery_ReportsThePositionOfASyntaxError(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		".[":                        `--query: at character 3, after ".[": unexpected EOF`,
		".events[] | select(.type)": "",
		".events[] | select(.type":  `--query: at character 25, after "…nts[] | select(.type": unexpected EOF`,
		`."ä" | ]`:                  `--query: at character 8, after ".\"ä\" | ": unexpected token "]"`,
		`"abc`:                      `--query: at character 5, after "\"abc": unterminated string literal`,
		"nosuchfunction":            "--query: function not defined: nosuchfunction/0",
	} {
		_, err := render.CompileQuery(t.Context(), text)
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.EqualError(t, err, want, text)
	}
}

func TestCompileQuery_StopsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	q, err := render.CompileQuery(ctx, "repeat(.)")
	require.NoError(t, err)
	seen := 0
	err = q([]byte(`1`), func([]byte) error {
		if seen++; seen == 3 {
			cancel()
		}
		return nil
	})
	require.ErrorIs(t, err, context.Canceled)

	q, err = render.CompileQuery(t.Context(), "1, halt, 2")
	require.NoError(t, err)
	var got []string
	require.NoError(t, q([]byte(`{}`), func(b []byte) error { got = append(got, string(b)); return nil }))
	require.Equal(t, []string{"1"}, got)
}

func TestParseFormat_ListsTheFormats(t *testing.T) {
	t.Parallel()
	_, err := render.ParseFormat("xml")
	require.EqualError(t, err, `--output "xml": want table, wide, json, jsonl, yaml, name`)
	for _, f := range render.Formats {
		got, err := render.ParseFormat(string(f))
		require.NoError(t, err)
		require.Equal(t, f, got)
	}
}

// L5: a template writes text. Integers keep all digits; control characters are escaped.
func TestCompileTemplate_WritesText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{{range .things}}{{.n}}{{"\t"}}{{.name}}{{"\n"}}{{end}}`: "9007199254740993\ta\n1.1\t\\u001b[2J\n",
		`{{len .things}}`:         "2\n",
		`{{json .things}}`:        `[{"n":9007199254740993,"name":"a"},{"n":1.1,"name":"\u001b[2J"}]` + "\n",
		`{{range .none}}x{{end}}`: "",
		`{{range .things}}{{if gt .n 1}}{{printf "%.2f" .n}};{{end}}{{end}}`:        "9007199254740992.00;1.10;\n",
		`{{eq (len .things) 2}} {{if eq .missing nil}}unset{{end}}`:                 "true unset\n",
		`{{with index .things 1}}{{lt 1 .n}} {{ge .n 1.1}} {{ne .name "a"}}{{end}}`: "true true true\n",
	} {
		var out bytes.Buffer
		run, err := render.CompileTemplate(text, &out)
		require.NoError(t, err, text)
		p := render.Printer{Out: &out, Format: render.JSON, Query: run}
		require.NoError(t, p.Document([]byte(`{"things":[{"n":9007199254740993,"name":"a"},{"n":1.10,"name":"\u001b[2J"}]}`), "", nil), text)
		require.Equal(t, want, out.String(), text)
	}
	var out bytes.Buffer
	run, err := render.CompileTemplate(`{{eq .a .a}} {{gt .a 5}} {{.a}}`, &out)
	require.NoError(t, err)
	require.NoError(t, run([]byte(`{"a":18446744073709551614}`), nil))
	require.Equal(t, "true true 18446744073709551614\n", out.String())
	run, err = render.CompileTemplate(`{{lt .a "x"}}`, nil)
	require.NoError(t, err)
	require.ErrorContains(t, run([]byte(`{"a":1}`), nil), "cannot compare")
	_, err = render.CompileTemplate("{{", nil)
	require.ErrorContains(t, err, "--template")
}
