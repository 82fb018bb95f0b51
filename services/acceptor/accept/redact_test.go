package accept_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/acceptor/accept"
)

// OpenWOP envelope contract §26 case 12.
func TestRedact_FailsClosedWhenTheRedactorIsDown(t *testing.T) {
	t.Parallel()
	down := fault.New(fault.ServiceUnavailable, "down")
	for name, d := range map[string]string{"good": doc(note, goodNote), "refused": doc(note, `{"text":7}`)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.redactor.err = down
			res, err := f.pipeline().Run(t.Context(), f.request(d))
			require.Nil(t, res)
			require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
			require.True(t, fault.Lookup(fault.CodeOf(err)).Retryable)
			f.nothingRecorded()
		})
	}
}

// replacer replaces one text by another in documents, and nothing in strings.
type replacer struct{ old, new string }

func (r replacer) Redact(_ context.Context, _ subject.Run, in accept.Texts) (accept.Texts, int, error) {
	out := accept.Texts{Strings: in.Strings}
	for _, d := range in.Documents {
		out.Documents = append(out.Documents, json.RawMessage(strings.ReplaceAll(string(d), r.old, r.new)))
	}
	return out, 1, nil
}

// silent is a redactor that returns too few texts.
type silent struct{}

func (silent) Redact(context.Context, subject.Run, accept.Texts) (accept.Texts, int, error) {
	return accept.Texts{}, 0, nil
}

func TestRedact_FailsClosedWhenTheRedactorLosesTexts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, d := range []string{doc(note, goodNote), doc(note, `{"text":7}`)} {
		p := accept.New(f.kinds, silent{}, accept.NewLogLedger(f.log, f.clock), f.clock, f.policy)
		_, err := p.Run(t.Context(), f.request(d))
		require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
		f.nothingRecorded()
	}
}

func TestRedact_RemovesSecretsFromEverythingRecorded(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ kind, payload string }{
		"note":      {note, `{"text":"a ` + canary + `","more":{"k":["` + canary + `"]}}`},
		"key":       {note, `{"text":"x","more":{"` + canary + `":1}}`},
		"reasoning": {note, `{"text":"x","reasoning":"because ` + canary + `"}`},
		"clarification": {
			"clarification.request",
			`{"questions":[{"id":"q","question":"` + canary + `?","context":{"c":"` + canary + `"}}]}`,
		},
		"error":  {"error", `{"code":"x","message":"failed with ` + canary + `","details":{"d":"` + canary + `"}}`},
		"schema": {"schema.request", `{"envelopeType":"error","reason":"` + canary + `"}`},
		"surface": {
			"ui.a2ui-surface",
			`{"catalogVersion":"0.9.1","surface":{"title":"` + canary + `","components":[{"component":"field.select","id":"f",` +
				`"label":"` + canary + `","options":[{"value":"` + canary + `","label":"` + canary + `"}]}]}}`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			res := f.accept(doc(tc.kind, tc.payload, meta("label", canary, "rendering", map[string]any{"title": canary})))
			accepted(t, res)
			for _, e := range f.events() {
				require.NotContains(t, string(e.AppendJSON(nil)), canary)
			}
			require.NotContains(t, string(res.Outcome)+string(res.Payload)+fmt.Sprint(res.Attributes), canary)
			require.Contains(t, string(res.Payload), marker)
		})
	}
}

// OpenWOP envelope contract §26 case 14.
func TestRedact_RefusesSecretsInIDs(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"envelopeId", "correlationId", "nodeId"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			res := f.accept(doc(note, goodNote, with(id, "x-"+canary)))
			r := refused(t, res, accept.Invalid, fault.InvalidEnvelopeShape)
			require.Equal(t, "/"+id, r.Details[0].InstancePath)
			require.NotContains(t, string(res.Outcome)+fmt.Sprint(res.Attributes), canary)
			f.nothingRecorded()
		})
	}
}

// Paths and types in a refusal come from the model.
func TestRefusal_ShowsNoSecret(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]string{
		"property name":   doc(note, `{"text":"x","more":{},"`+canary+`":1}`),
		"path":            `{"` + canary + `":1,"` + canary + `":2}`,
		"type":            doc("vendor.acme."+canary, `{}`),
		"requested type":  doc("schema.request", `{"envelopeType":"`+canary+`"}`),
		"ids of misshape": doc(note, goodNote, with("correlationId", canary), with("extra", 1)),
		"nested path":     doc("error", `{"code":"x","message":"y","details":{},"`+canary+`":{}}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			res := f.accept(d)
			require.NotNil(t, res.Refusal)
			require.NotContains(t, string(res.Outcome)+fmt.Sprint(res.Attributes), canary)
		})
	}
}

// The kinds in a refusal come from the contract's author.
func TestRefusal_ShowsNoSecretOfAContract(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	contract := &accept.Contract{Accepts: []string{"vendor." + canary + ".x"}}
	res := f.accept(doc(note, goodNote), func(r *accept.Request) { r.Contract = contract })
	r := refused(t, res, accept.Gated, fault.EnvelopeContractViolation)
	require.Contains(t, r.AllowedKinds, "vendor."+marker+".x")
	require.NotContains(t, string(res.Outcome), canary)
	require.Contains(t, contract.Accepts[0], canary, "the node's own list stays as it is")
}
