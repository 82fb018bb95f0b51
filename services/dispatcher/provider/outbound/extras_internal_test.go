package outbound

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// The adapter's members keep their order and their bytes: a model writes in the order of its schema.
func TestMergeMembers_KeepsTheRequest(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		sent string
		more map[string]json.RawMessage
		want string
	}{
		"added, sorted":         {`{"z":1.0,"a":2}`, map[string]json.RawMessage{"y": []byte(`1`), "x": []byte(`"t"`)}, `{"z":1.0,"a":2,"x":"t","y":1}`},
		"replaced in its place": {`{"z":1,"a":2}`, map[string]json.RawMessage{"z": []byte(`null`)}, `{"z":null,"a":2}`},
		"objects are merged":    {`{"g":{"b":1,"a":{"q":1}}}`, map[string]json.RawMessage{"g": []byte(`{"a":{"r":2},"c":3}`)}, `{"g":{"b":1,"a":{"q":1,"r":2},"c":3}}`},
		"an object for another": {`{"g":1}`, map[string]json.RawMessage{"g": []byte(`{"a":1}`)}, `{"g":{"a":1}}`},
		"an empty request":      {`{}`, map[string]json.RawMessage{"a": []byte(`1`)}, `{"a":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := mergeMembers([]byte(tc.sent), tc.more)
			require.True(t, ok)
			require.Equal(t, tc.want, string(got))
		})
	}
	_, ok := mergeMembers([]byte(`[]`), map[string]json.RawMessage{"a": []byte(`1`)})
	require.False(t, ok)
}
