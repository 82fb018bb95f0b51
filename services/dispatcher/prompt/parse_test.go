package prompt_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/schema/schematest"
	"waybill.dev/waybill/services/dispatcher/prompt"
)

const writer = `{"templateId":"writer","version":"1.2.0","kind":"user","text":"Write about {{topic}}.",
	"variables":[{"name":"topic","type":"string","required":true}]}`

func parse(t testing.TB, doc string) *prompt.Template {
	t.Helper()
	out, err := prompt.Parse([]byte(doc))
	require.NoError(t, err)
	return out
}

func TestParse_TakesATemplate(t *testing.T) {
	t.Parallel()
	w := parse(t, writer)
	require.Equal(t, "prompt:writer@1.2.0", w.Ref())
	require.Equal(t, prompt.User, w.Kind)
	require.Equal(t, prompt.HostLibrary, w.Library)
	require.Equal(t, []prompt.Variable{{Name: "topic", Type: "string", Required: true}}, w.Variables)
	require.Empty(t, w.Doubts())
}

func TestParse_ReportsEveryProblemWithItsPlace(t *testing.T) {
	t.Parallel()
	with := func(change string) string {
		return `{"templateId":"w","version":"1.0.0","kind":"user","text":"x","variables":[` + change + `]}`
	}
	for name, tc := range map[string]struct {
		doc   string
		paths []string
	}{
		"no JSON":                      {`{`, []string{""}},
		"no object":                    {`[]`, []string{""}},
		"a name twice":                 {`{"text":"a","text":"b"}`, []string{"/text"}},
		"nothing in it":                {`{}`, []string{"", "", "", ""}},
		"an unknown member":            {strings.Replace(writer, `"kind"`, `"more":1,"kind"`, 1), []string{"/more"}},
		"a kind that is none":          {strings.Replace(writer, `"user"`, `"assistant"`, 1), []string{"/kind"}},
		"a version that begins with 0": {strings.Replace(writer, `1.2.0`, `1.02.0`, 1), []string{"/version"}},
		"a text that is too long": {
			strings.Replace(writer, `Write`, strings.Repeat("é", prompt.MaxTemplateBytes/2), 1),
			[]string{"/text"},
		},
		"a variable twice": {
			with(`{"name":"a","type":"string","required":true},{"name":"a","type":"string","required":true}`),
			[]string{"/variables/1/name"},
		},
		"a path with a filter": {
			with(`{"name":"a","type":"string","required":true,"extractPath":"$.a[?(@.b)]"}`),
			[]string{"/variables/0/extractPath"},
		},
		"a secret that is no text": {
			with(`{"name":"a","type":"object","required":true,"source":"secret"}`),
			[]string{"/variables/0/type"},
		},
		"a default of another type": {
			with(`{"name":"a","type":"number","required":false,"defaultValue":"1"}`),
			[]string{"/variables/0/defaultValue"},
		},
		"several things at once": {
			with(`{"name":"a","type":"number","required":false,"defaultValue":"1","extractPath":"["}`),
			[]string{"/variables/0/extractPath", "/variables/0/defaultValue"},
		},
		"a pack's that names none": {
			strings.Replace(writer, `"kind"`, `"meta":{"source":"pack"},"kind"`, 1),
			[]string{"/meta", "/meta"},
		},
		"a time that is not on a clock": {
			strings.Replace(writer, `"kind"`, `"meta":{"createdAt":"2026-02-30T00:00:00Z"},"kind"`, 1),
			[]string{"/meta/createdAt"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := prompt.Parse([]byte(tc.doc))
			var wrong *prompt.ParseError
			require.ErrorAs(t, err, &wrong)
			var paths []string
			for _, p := range wrong.Problems {
				paths = append(paths, p.Path)
				require.NotEmpty(t, p.Message)
			}
			require.Equal(t, tc.paths, paths, "%s", err)
		})
	}
}

// published reads a schema of the protocol and inserts the kinds, which have their own file.
func published(t *testing.T, name string) map[string]any {
	t.Helper()
	read := func(name string) map[string]any {
		doc, err := os.ReadFile(filepath.Join(schematest.Dir(t), "schemas", name))
		require.NoError(t, err)
		return schematest.Value(t, doc).(map[string]any)
	}
	out := read(name)
	if properties, ok := out["properties"].(map[string]any); ok && properties["kind"] != nil {
		kind := read("prompt-kind.schema.json")
		properties["kind"] = map[string]any{"type": kind["type"], "enum": kind["enum"]}
	}
	return out
}

func compiled(t *testing.T, doc any) *schema.Schema {
	t.Helper()
	s, err := schema.Compile("schema", schematest.Document(t, doc))
	require.NoError(t, err)
	return s
}

func ours(t *testing.T, file string) any {
	t.Helper()
	doc, err := os.ReadFile(file)
	require.NoError(t, err)
	return schematest.Value(t, doc)
}

func TestTemplate_MeansWhatThePublishedOneMeans(t *testing.T) {
	t.Parallel()
	theirs, own := published(t, "prompt-template.schema.json"), ours(t, "template.schema.json")
	judge, mine := compiled(t, theirs), compiled(t, own)
	schematest.Twins{
		Schemas: []any{theirs, own},
		Words:   []string{"vendor.acme.writer", "1.2.0", "topic", "2026-11-21T10:00:00Z"},
		Adapt: func(sample any) {
			if meta, ok := sample.(map[string]any)["meta"].(map[string]any); ok && meta["source"] == "pack" {
				meta["packName"], meta["packVersion"] = "vendor.acme.writer", "1.2.0"
			}
		},
	}.Compare(t, func(what string, doc []byte) bool {
		return agree(t, what, doc, judge, mine)
	})
}

func agree(t *testing.T, what string, doc []byte, judge, mine *schema.Schema) bool {
	t.Helper()
	want, got := judge.Validate(doc), mine.Validate(doc)
	if (len(want) == 0) != (len(got) == 0) {
		require.Fail(t, "the published schema and ours disagree", "%s\n%.800s\npublished: %v\nours: %v", what, doc, want, got)
	}
	return len(want) == 0
}

func TestRef_MeansWhatThePublishedOneMeans(t *testing.T) {
	t.Parallel()
	theirs := published(t, "prompt-ref.schema.json")
	judge := compiled(t, theirs)
	schematest.Twins{
		Schemas: []any{
			theirs,
			map[string]any{"anyOf": []any{
				ours(t, "ref.schema.json"),
				map[string]any{"type": "string", "pattern": "^prompt:writer@"},
			}},
		},
		Words: []string{"prompt:writer@1.2.0", "prompt:writer", "writer", "1.2.0-rc.1+b"},
	}.Compare(t, func(what string, doc []byte) bool {
		want := judge.Validate(doc)
		_, wrong := prompt.ParseRef(doc)
		if (len(want) == 0) != (len(wrong) == 0) {
			require.Fail(t, "the published schema and ours disagree", "%s\n%s\npublished: %v\nours: %v", what, doc, want, wrong)
		}
		return len(want) == 0
	})
}

func TestParseRef_ReadsBothForms(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]prompt.Ref{
		`"prompt:writer"`:               {ID: "writer"},
		`"prompt:a.b-c@1.0.0-rc.1+b.2"`: {ID: "a.b-c", Version: "1.0.0-rc.1+b.2"},
		`{"templateId":"w","libraryId":"vendor.acme.desk","version":"1.0.0","variableOverrides":{"a":[1]}}`: {
			Library:   "vendor.acme.desk",
			ID:        "w",
			Version:   "1.0.0",
			Overrides: map[string]json.RawMessage{"a": json.RawMessage(`[1]`)},
		},
	} {
		got, wrong := prompt.ParseRef(json.RawMessage(doc))
		require.Empty(t, wrong, doc)
		require.Equal(t, want, got)
	}
}
