package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
)

// OpenWOP host contract §3.3: the vocabulary is closed, except for vendors.
func TestKnown_AcceptsCatalogueAndVendors(t *testing.T) {
	t.Parallel()
	for _, known := range []wire.EventType{
		wire.EventRunStarted, wire.EventRunCompleted, wire.EventNodeDispatched, wire.EventAgentReasoningDelta, wire.EventEnvelopeNLToFormat,
		wire.EventLoopbackLimit, wire.EventModelSubstituted, wire.EventReplayDiverged, "run.dead_lettered", "voice.barge_in",
		"core.workflowChain.event", "acme.invoice.paid", "acme.x", "a1-b_c.D-e",
	} {
		require.True(t, known.Known(), known)
	}
	for _, unknown := range []wire.EventType{
		"", "run", "run.", "run.complete", "run.started.x", "node.done", "acme", "acme.", ".acme", "acme..x", "Acme.x", "1acme.x", "acme.ä", "acme.x y",
		"openwop.x", "core.x", "vendor.x", "private.x", "local.x", "community.x", "*", "run.*",
	} {
		require.False(t, unknown.Known(), unknown)
	}
}

func TestCatalogue_DescribesEachType(t *testing.T) {
	t.Parallel()
	groups := []wire.Group{
		wire.GroupRun, wire.GroupNode, wire.GroupInterrupt, wire.GroupEnvelope, wire.GroupModel,
		wire.GroupTool, wire.GroupMemory, wire.GroupArtifact, wire.GroupLog, wire.GroupOther,
	}
	seen := map[string]wire.EventType{}
	for _, typ := range wire.EventTypes() {
		row, ok := typ.Describe()
		require.True(t, ok, typ)
		require.True(t, typ.Known(), typ)
		require.Contains(t, groups, row.Group, typ)
		require.Regexp(t, `^[A-Z].*\.$`, row.Meaning, typ)
		require.Empty(t, seen[row.Meaning], "%s has the meaning of another type", typ)
		seen[row.Meaning] = typ
	}
	require.Len(t, wire.EventTypes(), 107, "OpenWOP host contract Appendix B")
	row, ok := wire.EventType("acme.invoice.paid").Describe()
	require.False(t, ok)
	require.Equal(t, wire.TypeRow{Group: wire.GroupOther}, row)
}
