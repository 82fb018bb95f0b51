package accept_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/a2ui"
	"waybill.dev/waybill/protocol/approval"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// surfaceWith returns a surface with a text at one place.
func surfaceWith(place, text string) string {
	s := `{"reasoning":"{reasoning}","catalogVersion":"0.9.1","surface":{"title":"{title}","components":[{"component":"heading","text":"{heading}"},` +
		`{"component":"text","text":"{text}"},{"component":"field.text","id":"{id}","label":"{label}","placeholder":"{placeholder}"},` +
		`{"component":"field.select","id":"choice","label":"l","options":[{"value":"{value}","label":"{option}"},{"value":"b","label":"b"}]},` +
		`{"component":"action.button","id":"go","label":"{button}","action":{"target":"resume"}}]}}`
	s = strings.ReplaceAll(s, "{"+place+"}", text)
	for _, other := range []string{
		"reasoning", "title", "heading", "text", "id", "label", "placeholder", "value", "option",
		"button",
	} {
		s = strings.ReplaceAll(s, "{"+other+"}", other)
	}
	return s
}

// OpenWOP envelope contract §18, a2ui-surface-no-secret-rendering.
func TestSurface_RendersNoSecret(t *testing.T) {
	t.Parallel()
	for _, place := range []string{
		"reasoning", "title", "heading", "text", "id", "label", "placeholder", "value", "option",
		"button",
	} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			res := f.accept(doc(accept.KindSurface, surfaceWith(place, "a "+canary+" b")))
			accepted(t, res)
			require.NotContains(t, string(res.Payload), canary)
			require.Contains(t, string(res.Payload), "a "+marker+" b")
			for _, e := range f.events() {
				require.NotContains(t, string(e.AppendJSON(nil)), canary)
			}
		})
	}
	t.Run("a member that the catalogue has not", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		res := f.accept(doc(accept.KindSurface, strings.Replace(surfaceWith("", ""), `"placeholder"`, `"`+canary+`"`, 1)))
		refused(t, res, accept.Invalid, fault.EnvelopeInvalid)
		require.NotContains(t, string(res.Outcome), canary)
		f.nothingRecorded()
	})
}

// Ids that differ only in a secret are equal after redaction.
func TestSurface_IsRefusedIfRedactionMadeItAmbiguous(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const form = `{"catalogVersion":"0.9.1","surface":{"components":[{"component":"field.text","id":"` + canary + `","label":"l"},` +
		`{"component":"field.text","id":"` + marker + `","label":"l"}]}}`
	refused(t, f.accept(doc(accept.KindSurface, form)), accept.Invalid, fault.EnvelopeInvalid)
	f.nothingRecorded()
}

// OpenWOP envelope contract §26 case 18, a2ui-untrusted-blocks-approval: an untrusted
// surface does not advance an approval, a person's answer does.
func TestSurface_UntrustedDoesNotAdvanceAnApproval(t *testing.T) {
	t.Parallel()
	const form = `{"catalogVersion":"0.9.1","surface":{"components":[{"component":"field.select","id":"verdict","label":"Pay?","required":true,` +
		`"options":[{"value":"yes","label":"Pay"},{"value":"no","label":"Do not"}]},{"component":"action.button","id":"go","label":"Go","action":{"target":"resume"}}]}}`
	untrusted := meta("contentTrust", "untrusted")
	f := newFixture(t)
	res := f.accept(doc(accept.KindSurface, form, untrusted), func(r *accept.Request) { r.ApprovalContext = true })
	r := refused(t, res, accept.Invalid, fault.UntrustedBlocksApproval)
	require.Equal(t, string(fault.UntrustedBlocksApproval), r.Reason())
	f.nothingRecorded()
	require.Equal(t, fault.UntrustedBlocksApproval, fault.CodeOf(approval.OfEnvelope(wire.Untrusted)))

	// Without an approval context it is recorded as untrusted. The approval stays open.
	res = f.accept(doc(accept.KindSurface, form, untrusted))
	require.Equal(t, wire.Untrusted, accepted(t, res).NormalizedMeta.ContentTrust)
	for _, e := range f.events() {
		require.False(t, strings.HasPrefix(string(e.Type), "approval."), e.Type)
		require.NotEqual(t, wire.EventInterruptResolved, e.Type)
	}

	// A person submits the surface. The person's permissions decide, and the answer counts.
	s, err := a2ui.Parse(res.Payload)
	require.NoError(t, err)
	resume, wrong, err := s.Submit([]byte(`{"verdict":"yes"}`), []byte(`{"type":"object","required":["verdict"]}`))
	require.NoError(t, err)
	require.Empty(t, wrong)
	require.JSONEq(t, `{"verdict":"yes"}`, string(resume))
	gate := approval.Gate{ID: "pay", Role: "approver"}
	_, err = approval.Decide(gate, approval.Person{ID: "passer-by"}, approval.Grant, "")
	require.Equal(t, fault.Forbidden, fault.CodeOf(err))
	d, err := approval.Decide(gate, approval.Person{ID: "ann", Roles: []string{"approver"}}, approval.Grant, "")
	require.NoError(t, err)
	require.True(t, d.Released)
	require.Equal(t, wire.EventApprovalGranted, d.Event.Type)
	require.Empty(t, d.Event.Trust, "the form does not taint a person's decision")
}

// OpenWOP envelope contract §18: a button for a conversation that the run does not have would be a dead end.
func TestSurface_OfARunWithoutAConversationLeadsToTheInterrupt(t *testing.T) {
	t.Parallel()
	const form = `{"catalogVersion":"0.9.1","surface":{"components":[{"component":"text","text":"t"},{"component":"action.button","id":"go","label":"Go","action":{"target":"exchange"}}]}}`
	f := newFixture(t)
	r := refused(t, f.accept(doc(accept.KindSurface, form), func(r *accept.Request) { r.NoConversation = true }), accept.Invalid, fault.EnvelopeInvalid)
	require.Equal(t, "/payload/surface/components/1/action/target", r.Details[0].InstancePath)
	require.Contains(t, r.Details[0].Message, "must be resume")
	accepted(t, f.accept(doc(accept.KindSurface, strings.Replace(form, "exchange", "resume", 1)), func(r *accept.Request) { r.NoConversation = true }))
	accepted(t, newFixture(t).accept(doc(accept.KindSurface, form)))
}
