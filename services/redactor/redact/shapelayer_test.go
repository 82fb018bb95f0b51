package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/redactor/redact"
)

// An answer of a model is a JSON text: what looks like a secret in a string of it,
// or in a string of a string, does so behind escapes alone.
func TestShapes_FindBehindEscapesOfJSON(t *testing.T) {
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

// The place of a name that looks like a secret is told as a JSON pointer.
func TestShapes_FindInJSONPointers(t *testing.T) {
	t.Parallel()
	for _, l := range labelled(t) {
		if l.Rule == "" {
			continue
		}
		out, n := redact.DefaultShapes().Replace("/payload/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(l.Text))
		require.Equal(t, 1, n, out)
		require.Contains(t, out, "[REDACTED:shape."+l.Rule+"]")
	}
}
