package lint_test

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// chain is a definition of n nodes, each after the one before it on a condition.
func chain(n int) []byte {
	id := func(i int) string { return strconv.FormatInt(int64(i), 36) } // the document has at most 1 MB
	var nodes, edges []string
	for i := range n {
		nodes = append(nodes, fmt.Sprintf(`{"id":"%s","typeId":"core.noop"}`, id(i)))
		if i > 0 {
			edges = append(edges, fmt.Sprintf(`{"id":"%s","sourceNodeId":"%s","targetNodeId":"%s","condition":{"type":"expression","expression":"k"}}`, id(i), id(i-1), id(i)))
		}
	}
	return fmt.Appendf(nil, `{"id":"w","name":"w","version":"1","nodes":[%s],"edges":[%s]}`, strings.Join(nodes, ","), strings.Join(edges, ","))
}

// allocated returns the bytes that checking a definition allocates.
func allocated(t *testing.T, doc []byte) uint64 {
	t.Helper()
	h := host()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r := h.Check(doc)
	runtime.ReadMemStats(&after)
	require.NotNil(t, r.Def, "%v", r.Problems)
	return after.TotalAlloc - before.TotalAlloc
}

// The memory grows with the length of a chain, not with its square.
func TestCheck_LimitsTheGuardsOfLongChains(t *testing.T) { //nolint:paralleltest // counts the allocations of the process
	got := allocated(t, chain(7000))
	t.Logf("%d MB", got>>20)
	require.Less(t, got, uint64(512<<20))
}

// Branches on opposite conditions exclude each other before a node that waits for both.
func TestCheck_WarnsAboutBranchesThatExcludeEachOther(t *testing.T) {
	t.Parallel()
	r := host().Check([]byte(`{"id":"w","name":"w","version":"1","nodes":[{"id":"s","typeId":"core.conditional","config":{"expression":"true"}},
		{"id":"a","typeId":"core.noop"},{"id":"b","typeId":"core.noop"},{"id":"j","typeId":"core.noop"}],"edges":[
		{"id":"e1","sourceNodeId":"s","targetNodeId":"a","condition":{"type":"equals","left":"result","right":true}},
		{"id":"e2","sourceNodeId":"s","targetNodeId":"b","condition":{"type":"equals","left":"result","right":false}},
		{"id":"e3","sourceNodeId":"a","targetNodeId":"j"},{"id":"e4","sourceNodeId":"b","targetNodeId":"j"}]}`))
	require.Contains(t, fmt.Sprint(r.Warnings), "never runs: the conditions of edges e1 and e2 exclude each other; set triggerRule any_success")
}

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
