package redact_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/redactor/redact"
)

// An answer of a model is JSON: a secret in a string, or in a string in a string, has
// escapes.
func TestShapes_FindSecretsWithJSONEscapes(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for _, l := range labelled(t) {
		if seen[l.Rule]++; seen[l.Rule] > 4 {
			continue
		}
		text := "Some prose before it.\n" + l.Text + "\nand some after it.\n"
		for range 2 {
			quoted, err := json.Marshal(map[string]string{"answer": text})
			require.NoError(t, err)
			text = string(quoted)
			out, n := redact.DefaultShapes().Replace(text)
			var doc map[string]string
			require.NoError(t, json.Unmarshal([]byte(out), &doc), "%s", out)
			if l.Rule == "" {
				require.Zero(t, n, text)
				continue
			}
			require.Equal(t, 1, n, text)
			require.Contains(t, out, "[REDACTED:shape."+l.Rule+"]")
			inner, err := json.Marshal(l.Secret)
			require.NoError(t, err)
			require.NotContains(t, out, strings.Trim(string(inner), `"`))

			s := redact.Compile(nil).With(redact.DefaultShapes())
			_, all, count := written(s, strings.SplitAfter(text, "a")...)
			require.Equal(t, 1, count, text)
			require.Contains(t, all, "[REDACTED:shape."+l.Rule+"]")
		}
	}
}

// A model may escape every character. The secret is found, however long the lines are.
func TestShapes_FindFullyEscapedSecretsInAStream(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for _, l := range labelled(t) {
		if seen[l.Rule]++; l.Rule == "" || seen[l.Rule] > 3 {
			continue
		}
		var b strings.Builder
		for _, r := range "Some prose before it, and more.\n" + l.Text + "\nand some after it.\n" {
			fmt.Fprintf(&b, `\u%04X`, r)
		}
		var pieces []string
		for rest := b.String(); rest != ""; {
			n := min(13, len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		_, all, n := written(redact.Compile(nil).With(redact.DefaultShapes()), pieces...)
		require.Equal(t, 1, n, l.Text)
		require.Contains(t, all, "[REDACTED:shape."+l.Rule+"]")
		var text string
		require.NoError(t, json.Unmarshal([]byte(`"`+all+`"`), &text), "%s", all)
		require.NotContains(t, text, l.Secret)
	}
}

// Errors contain member names in JSON pointers, and a name may look like a secret.
func TestShapes_FindInJSONPointers(t *testing.T) {
	t.Parallel()
	for _, l := range labelled(t) {
		if _, found := redact.DefaultShapes().Replace(l.Text); l.Rule == "" || found == 0 {
			continue // what the rules miss is counted elsewhere
		}
		out, n := redact.DefaultShapes().Replace("/payload/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(l.Text))
		require.Equal(t, 1, n, out)
		require.Contains(t, out, "[REDACTED:shape."+l.Rule+"]")
	}
}
