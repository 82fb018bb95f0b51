package accept_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/kinds"
)

func TestKind_UnknownIsGatedWithTheCatalogue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res := f.accept(doc("vendor.acme.other", `{}`))
	r := refused(t, res, accept.Gated, fault.UnknownEnvelopeKind)
	want := append(append(wire.Universals(), kinds.Core()...), note)
	slices.Sort(want[len(wire.Universals()):])
	require.Equal(t, want, r.AllowedKinds)
	all := `["clarification.request","schema.request","schema.response","error","media.audio","media.file","media.image","ui.a2ui-surface","vendor.acme.note"]`
	require.JSONEq(t, `{
		"status":"gated","reason":"unknown_envelope_kind: this host does not advertise the kind","allowedKinds":`+all+`,
		"gate":{"refusedType":"vendor.acme.other","refusalMode":"fail-node","acceptedTypes":`+all+`}}`, string(res.Outcome))
}

// The kind step runs before the contract step.
func TestKind_UnadvertisedIsRefusedEvenIfTheNodeAcceptsIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	res := f.accept(doc("vendor.acme.other", `{}`), func(r *accept.Request) {
		r.Contract = &accept.Contract{Accepts: []string{"vendor.acme.other"}}
	})
	refused(t, res, accept.Gated, fault.UnknownEnvelopeKind)
}

// OpenWOP envelope contract §26 case 23: new envelopes are refused; recorded ones stay
// readable.
func TestKind_DeregisteredIsRefusedOnTheNextEmission(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.accept(doc(note, goodNote))
	accepted(t, first)
	f.head = first.Head
	before, had := f.events(), f.kinds
	registry, err := kinds.New(kinds.LintOff)
	require.NoError(t, err)
	f.kinds = registry
	for _, correlation := range []string{"corr-1", "corr-2"} { // recorded, and fresh
		refused(t, f.accept(doc(note, goodNote, with("correlationId", correlation))), accept.Gated, fault.UnknownEnvelopeKind)
		f.nothingRecorded()
	}
	require.Equal(t, before, f.events())
	require.Contains(t, string(before[2].Payload), goodNote)

	f.kinds = had
	again := f.accept(doc(note, goodNote))
	require.True(t, again.Recalled)
	require.Equal(t, string(first.Outcome), string(again.Outcome), "the kind is registered again")
}
