package judge

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"github.com/stretchr/testify/require"
)

func TestDescribe_HasWordsForEveryKind(t *testing.T) {
	t.Parallel()
	require.Equal(t, "does not satisfy contentMediaType", describe(&kind.ContentMediaType{Want: "text/plain"}))
	require.Equal(t, "want at least 2 items of the kind the schema describes", describe(&kind.MinContains{Want: 2}))
	require.Equal(t, "with member a also required: b, c", describe(&kind.Dependency{Prop: "a", Missing: []string{"b", "c"}}))
	require.Equal(t, "member name not allowed", describe(&kind.PropertyNames{Property: "secret"}))
	require.Equal(t, "not one of the allowed values", describe(&kind.Enum{Want: []any{strings.Repeat("x", 100)}}))
}
