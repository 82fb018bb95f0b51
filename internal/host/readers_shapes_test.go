package host

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/strictjson"
)

// mark is the prefix of the redactor's replacements.
const mark = "[REDACTED"

// throughShapes: the redactor's second layer replaces texts that look like secrets and changes nothing
// else: no value moves, no number changes, and no members merge.
func (r readers) throughShapes(t *testing.T, doc []byte, want any) {
	t.Helper()
	out, _, err := r.shaped.JSON(doc, strictjson.Default)
	require.NoError(t, err)
	masked(t, want, meaning(t, out))
}

// masked asserts that got equals want, except for texts and names with a mark.
func masked(t *testing.T, want, got any) {
	t.Helper()
	switch want := want.(type) {
	case string:
		text, ok := got.(string)
		require.True(t, ok && (text == want || strings.Contains(text, mark)), "%q became %v", want, got)
	case []any:
		list, _ := got.([]any)
		require.Len(t, list, len(want))
		for i := range want {
			masked(t, want[i], list[i])
		}
	case map[string]any:
		object, _ := got.(map[string]any)
		require.Len(t, object, len(want))
		renamed := 0
		for name, v := range want {
			if other, same := object[name]; same {
				masked(t, v, other)
				continue
			}
			renamed++
		}
		for name := range object {
			if _, same := want[name]; !same {
				require.Contains(t, name, mark)
				renamed--
			}
		}
		require.Zero(t, renamed)
	default:
		require.Equal(t, want, got)
	}
}
