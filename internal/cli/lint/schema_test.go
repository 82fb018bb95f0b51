package lint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/exit"
)

func TestSchemaLint_ExplainsEachFinding(t *testing.T) {
	t.Parallel()
	variants := `{"type":"object","properties":{"a":{"anyOf":[{"type":"object","properties":{"x":{"type":"string"}}},{"type":"object"}]}}}`
	recursive := `{"type":"object","properties":{"parts":{"type":"array","items":{"$ref":"#"}}}}`
	for name, tc := range map[string]struct {
		args  []string
		doc   string
		lines []string // nil means no findings
	}{
		"sound":            {nil, `{"type":"object","additionalProperties":false}`, nil},
		"a property named": {nil, `{"type":"object","properties":{"not":{"type":"string"},"oneOf":{"type":"string"}}}`, nil},
		"variants without a discriminator": {nil, variants, []string{
			"-: /properties/a/anyOf/0: variant-discriminator: the branch needs",
			"-: /properties/a/anyOf/1: variant-discriminator: the branch needs",
		}},
		"a forbidden keyword": {
			nil, `{"oneOf":[{"type":"string"}]}`,
			[]string{"-: /oneOf: forbidden-keyword [openai, anthropic, gemini]: the keyword oneOf"},
		},
		"strict only": {
			[]string{"--level", "strict"},
			`{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"type":"string","maxLength":3}}}`,
			[]string{"-: /properties/a/maxLength: no-string-constraint [openai, anthropic]"},
		},
		"a recursion that one vendor refuses": {nil, recursive, []string{
			"-: /properties/parts/items: no-recursive-ref [anthropic]: the reference leads back to itself; unroll",
		}},
		"another vendor": {[]string{"--vendor", "openai"}, recursive, nil},
		"not projectable for any vendor": {nil, `{"allOf":[{"patternProperties":{"x":true}},{"properties":{"a":true}}]}`, []string{
			"-: /allOf: forbidden-keyword", "-: (root): all-of-not-plain [openai, anthropic, gemini]: ",
		}},
		"an open object is no finding": {nil, `{"type":"object"}`, nil},
		"no JSON":                      {nil, `{`, []string{"-: (root): not-a-schema: "}},
		"no schema":                    {nil, `{"type":"thing"}`, []string{"-: /type: not-a-schema: "}},
		"an external reference": {
			nil, `{"$ref":"https://schemas.example/x.json"}`,
			[]string{"-: (root): not-a-schema: "},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := command(t, tc.doc, append([]string{"schema", "lint", "-"}, tc.args...)...)
			if tc.lines == nil {
				require.NoError(t, err)
				require.Empty(t, out)
				return
			}
			require.ErrorIs(t, err, errFindings)
			got := strings.Split(strings.TrimSpace(out), "\n")
			require.Len(t, got, len(tc.lines), out)
			for i, want := range tc.lines {
				require.Contains(t, got[i], want)
			}
		})
	}
}

func TestSchemaLint_ReadsSeveralFilesAndWritesJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.json"), filepath.Join(dir, "bad.json")
	require.NoError(t, os.WriteFile(good, []byte(`{"type":"object"}`), 0o600))
	require.NoError(t, os.WriteFile(bad, []byte(`{"not":{}}`), 0o600))
	out, err := command(t, "", "schema", "lint", "-o", "json", good, bad)
	require.ErrorIs(t, err, errFindings)
	require.Contains(t, err.Error(), "1 finding in 2 files")
	require.JSONEq(t, `[{"file":"`+bad+`","line":1,"column":2,"path":"/not","rule":"forbidden-keyword","vendors":["openai","anthropic","gemini"],`+
		`"message":"the keyword not is outside the subset; leave it out"}]`, out)

	out, err = command(t, "", "schema", "lint", "-o", "json", good)
	require.NoError(t, err)
	require.JSONEq(t, `[]`, out)
}

func TestSchemaLint_RejectsInvalidFlags(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"level":  {"--level", "lax", "-"},
		"output": {"-o", "xml", "-"},
		"file":   {"no-such-file.json"},
		"vendor": {"--vendor", "acme", "-"},
	} {
		_, err := command(t, "{}", append([]string{"schema", "lint"}, args...)...)
		require.Equal(t, exit.Usage, exit.Status(err), "%s: %v", name, err)
	}
}

// What is sent in another form, with vendors, place and rule; none of it fails the command.
func TestSchemaLint_ListsRewrites(t *testing.T) {
	t.Parallel()
	doc := `{"type":"object","required":["a b"],"additionalProperties":false,"properties":{"a b":{"type":"string","minLength":2,"nullable":true}}}`
	out, err := command(t, doc, "schema", "lint", "--rewrites", "-")
	require.NoError(t, err)
	require.Equal(t, []string{
		"-: /properties/a b/nullable: warning: converted: null is allowed",
		"-: /properties/a b/minLength: warning: described [openai, anthropic]: minLength is put into the description, because it is not enforced",
		"-: /properties/a b: warning: renamed-property [anthropic]: sent as a_b, because names of properties must match ^[a-zA-Z0-9_.-]{1,64}$",
	}, strings.Split(strings.TrimSpace(out), "\n"))
	out, err = command(t, doc, "schema", "lint", "--rewrites", "--vendor", "groq", "-")
	require.NoError(t, err)
	require.Contains(t, out, "described [groq]")
	out, err = command(t, doc, "schema", "lint", "-")
	require.NoError(t, err)
	require.Empty(t, out)
}
