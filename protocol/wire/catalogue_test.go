package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
)

// OpenWOP host contract §3.3: the vocabulary is closed, but for vendors.
func TestKnown_IsTheCatalogueAndVendors(t *testing.T) {
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
