package lint_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A run goes on without an output of a node that passes its ports on.
func TestCheck_WarnsAboutMissingOutputsOfPassingNodes(t *testing.T) {
	t.Parallel()
	for _, typeID := range []string{"core.identity", "core.parallel", "core.end"} {
		r := host().Check(fmt.Appendf(nil, `{"id":"w","name":"w","version":"1","nodes":[{"id":"a","typeId":%q},{"id":"b","typeId":"core.noop"}],
			"edges":[{"id":"e","sourceNodeId":"a","targetNodeId":"b","sourceOutput":"mail"}]}`, typeID))
		require.Empty(t, r.Problems, typeID)
		require.Contains(t, paths(r.Warnings), "/edges/0/sourceOutput port", typeID)
	}
}
