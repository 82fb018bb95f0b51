package acceptor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/services/acceptor"
)

// OpenWOP envelope contract §2.1: text of a model is completed if the caller marks it as such, and
// validated as it is otherwise. Repeated, it has one outcome.
func TestAccept_CompletesTheTextOfAModel(t *testing.T) {
	t.Parallel()
	h := start(t, nil)
	h.open(t, externalRun, "")
	said := []byte(`{"type":"error","payload":{"code":"x_y","message":"m"}}`)
	require.Contains(t, string(h.anywhere(t, said).GetOutcome()), `"status":"invalid"`)
	accept := func() *acceptorv1.AcceptResponse {
		res, err := h.Accept(t.Context(), &acceptorv1.AcceptRequest{Run: externalRun, NodeId: "ask", Envelope: said, ModelOutput: true})
		require.NoError(t, err)
		return res
	}
	first := accept()
	require.Contains(t, string(first.GetOutcome()), `"status":"accepted"`)
	require.Equal(t, first.GetOutcome(), accept().GetOutcome())
	require.Len(t, h.frames(t), 3)
}

// OpenWOP envelope contract §6, step 0.
func TestAccept_WithoutTheCapabilityRefusesEverything(t *testing.T) {
	t.Parallel()
	h := start(t, func(c *acceptor.Config) { c.NoAIEnvelope = true })
	h.open(t, externalRun, "")
	require.Contains(t, string(h.anywhere(t, numbered("c1")).GetOutcome()), `"reason":"capability_required"`)
	kinds, err := h.ListKinds(t.Context(), &acceptorv1.ListKindsRequest{})
	require.NoError(t, err)
	require.Empty(t, kinds.GetKinds())
}
