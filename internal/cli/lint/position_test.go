package lint

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLocate_FindsMembersAndElements(t *testing.T) {
	t.Parallel()
	doc := []byte("{\n  \"é\": [1, {\"a/b\": true}],\n\t\"c\" : \"x\"\n}\n")
	for pointer, want := range map[string]position{
		"":             {1, 1},
		"/é":           {2, 3},
		"/é/0":         {2, 9},
		"/é/1":         {2, 12},
		"/é/1/a~1b":    {2, 13},
		"/é/1/missing": {2, 12},
		"/c":           {3, 2},
		"/d/e":         {1, 1},
	} {
		require.Equal(t, want, locate(doc, pointer), pointer)
	}
	require.Equal(t, position{2, 7}, locate([]byte("{\n  \"a\":}"), "/a"))
	require.Equal(t, position{2, 1}, locate([]byte("{\"a\":1,\n"), "/x"))
	require.Equal(t, position{1, 1}, locate(nil, ""))
}
