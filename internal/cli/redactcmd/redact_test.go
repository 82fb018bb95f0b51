package redactcmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/cli/exit"
)

// anthropicKey has the shape of a key, but is not one.
const anthropicKey = "sk-" + "ant-api03-abcdefghijklmnopqrstuvwxyz0123"

func TestRedactTest_ReportsRuleLayerAndPlace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secrets := filepath.Join(dir, "secrets.yaml")
	require.NoError(t, os.WriteFile(secrets, []byte("vault/one: my-known-value\n"), 0o600))
	for name, tc := range map[string]struct {
		in     string
		args   []string
		format string
		want   []find
		left   string
	}{
		"a text": {
			"hello\nkey " + anthropicKey + "\n", nil, asText,
			[]find{{"shape.anthropic-key", "shape", "line 2, column 5", 1}},
			`"hello\nkey [REDACTED:shape.anthropic-key]\n"`,
		},
		"a known value": {
			"a my-known-value, again my-known-value",
			[]string{"--secrets-file", secrets},
			asText,
			[]find{{"vault/one", "known", "line 1, column 3", 1}, {"vault/one", "known", "line 1, column 31", 1}},
			`"a [REDACTED:vault/one], again [REDACTED:vault/one]"`,
		},
		"a document": {
			`{"a":[{"password":"S3cr3t-value-77"}],"n":9007199254740993}`, nil, asJSON,
			[]find{{"shape.assignment", "shape", "/a/0/password", 1}},
			`{"a":[{"password":"[REDACTED:shape.assignment]"}],"n":9007199254740993}`,
		},
		"a name": {
			`{"a/b":{"` + anthropicKey + `":1}}`, nil, asJSON,
			[]find{{"shape.anthropic-key", "shape", "/a~1b/[REDACTED:shape.anthropic-key] (the name)", 1}},
			`{"a/b":{"[REDACTED:shape.anthropic-key]":1}}`,
		},
		"twice in one place": {
			`["` + anthropicKey + ` ` + anthropicKey + `"]`, nil, asJSON,
			[]find{{"shape.anthropic-key", "shape", "/0", 2}},
			`["[REDACTED:shape.anthropic-key] [REDACTED:shape.anthropic-key]"]`,
		},
		"a document read as a text": {
			`{"password":"S3cr3t-value-77"}`,
			[]string{"--as", "text"},
			asText,
			[]find{{"shape.assignment", "shape", "line 1, column 14", 1}},
			`"{\"password\":\"[REDACTED:shape.assignment]\"}"`,
		},
		"a marker that was there": {
			"[REDACTED:shape.openai-key] stays", nil, asText,
			[]find{},
			`"[REDACTED:shape.openai-key] stays"`,
		},
		"known values only": {anthropicKey, []string{"--redact-shapes=false"}, asText, []find{}, `"` + anthropicKey + `"`},
		"nothing":           {"", nil, asText, []find{}, `""`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := command(t, tc.in, append([]string{"redact", "test", "-", "-o", "json"}, tc.args...)...)
			want := exit.Done
			if len(tc.want) > 0 {
				want = exit.Failed
			}
			require.Equal(t, want, exit.Status(err), "%v", err)
			var r redaction
			require.NoError(t, json.Unmarshal([]byte(out), &r))
			require.Equal(t, tc.format, r.Format)
			require.Equal(t, tc.want, r.Finds)
			require.JSONEq(t, tc.left, string(r.Redacted))
		})
	}
}

// Redacted text is not printed in any format.
func TestRedactTest_NeverPrintsRedactedText(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"table", "wide", "json", "jsonl", "yaml", "name"} {
		for _, in := range []string{anthropicKey, `{"` + anthropicKey + `":["` + anthropicKey + `"]}`} {
			out, err := command(t, in, "redact", "test", "-", "-o", format)
			require.Equal(t, exit.Failed, exit.Status(err))
			require.Contains(t, out, "shape.anthropic-key")
			require.NotContains(t, out, "abcdefghijklm", format)
		}
	}
}

func TestRedactTest_ErrorsDoNotQuoteTheDocument(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := filepath.Join(dir, "open.yaml")
	require.NoError(t, os.WriteFile(open, []byte("id: "+anthropicKey+"\n"), 0o600))
	require.NoError(t, os.Chmod(open, 0o644)) //nolint:gosec // G302: the command must reject a readable file
	for name, tc := range map[string]struct {
		in   string
		args []string
	}{
		"a name twice":          {`{"` + anthropicKey + `":1,"` + anthropicKey + `":2}`, []string{"--as", "json", "-"}},
		"a value that is wrong": {`{"` + anthropicKey + `":` + anthropicKey + `}`, []string{"--as", "json", "-"}},
		"no such form":          {"", []string{"--as", "xml", "-"}},
		"no such file":          {"", []string{filepath.Join(dir, "none")}},
		"readable secrets":      {"", []string{"--secrets-file", open, "-"}},
		"no such column":        {"", []string{"--columns", "ghost", "-"}},
	} {
		out, err := command(t, tc.in, append([]string{"redact", "test"}, tc.args...)...)
		require.Equal(t, exit.Usage, exit.Status(err), "%s: %v", name, err)
		require.NotContains(t, out+err.Error(), strings.TrimPrefix(anthropicKey, "sk-"), name)
	}
}
