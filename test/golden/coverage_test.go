package golden

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
)

// unrecorded are the event types that no recorded run can have, with the reason.
var unrecorded = map[wire.EventType]string{
	wire.EventVersionPinned:  "no node type of this host has had an incompatible change; package run's tests have one that has",
	wire.EventReplayDiverged: "only a replay records it, and the corpus has sources of replays",
	// Gates of runs record approval.received.
	wire.EventApprovalGranted:  "only the governance seam makes it and returns it to its caller: no run has it",
	wire.EventApprovalRejected: "the same",
}

// typesOf returns the event types and node types of the corpus.
func typesOf(t *testing.T) (events map[wire.EventType]bool, nodes map[string]bool) {
	t.Helper()
	events, nodes = map[wire.EventType]bool{}, map[string]bool{}
	for _, file := range recordings(t) {
		_, source, plan := load(t, file)
		got := map[string]bool{}
		for _, e := range source {
			events[e.Type], got[e.NodeID] = true, got[e.NodeID] || e.Type == wire.EventNodeStarted || e.Type == wire.EventNodeFailed
		}
		for _, n := range plan.Def.Nodes {
			nodes[n.TypeID] = nodes[n.TypeID] || got[n.ID]
		}
	}
	return events, nodes
}

// emitted returns the event types that the host has a name for.
func emitted(t *testing.T) []wire.EventType {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "protocol", "wire", "types.go"), nil, 0)
	require.NoError(t, err)
	var out []wire.EventType
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Event") {
			return true
		}
		if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			name, err := strconv.Unquote(lit.Value)
			require.NoError(t, err)
			out = append(out, wire.EventType(name))
		}
		return true
	})
	require.Greater(t, len(out), 40)
	return out
}

// Every event type and node type of the host occurs in a recorded run, so that changes of their
// behaviour are detected.
func TestGolden_HasEveryEventTypeAndNodeType(t *testing.T) {
	t.Parallel()
	events, nodes := typesOf(t)
	for _, e := range emitted(t) {
		if reason, known := unrecorded[e]; known {
			require.False(t, events[e], "%s occurs, although %s: remove it from the list", e, reason)
			continue
		}
		assert.True(t, events[e], "no recorded run has %s: add one to test/conformance, and record with `make gen ONLY=golden`", e)
	}
	for _, id := range types(t).IDs() {
		assert.True(t, nodes[id], "no recorded run has a node of type %s: add one to test/conformance, and record with `make gen ONLY=golden`", id)
	}
}
