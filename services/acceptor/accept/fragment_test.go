package accept_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

// OpenWOP envelope contract §2, PartialInfo.
func TestFragment_IsValidatedButNotCountedRecordedOrBound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	piece := map[string]any{"partial": map[string]any{"isPartial": true, "index": 0, "total": -1}}
	full := func(r *accept.Request) { r.Counters.EnvelopesPerTurn = &accept.Counter{Current: 5, Cap: 5} }
	res := f.accept(doc(note, `{"text":{"not":"whole yet, `+canary+`"}}`, piece), full)
	require.Empty(t, accepted(t, res).RecordedEventIDs)
	require.Empty(t, res.Payload, "a secret may be split over two fragments")
	require.NotContains(t, string(res.Outcome), canary)
	f.nothingRecorded()

	refused(t, f.accept(doc("vendor.acme.other", goodNote, piece)), accept.Gated, fault.UnknownEnvelopeKind)
	last := map[string]any{"partial": map[string]any{"isPartial": false, "index": 1, "total": 2}}
	require.Len(t, accepted(t, f.accept(doc(note, goodNote, last))).RecordedEventIDs, 1)
}
