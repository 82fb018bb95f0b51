package accept_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor/accept"
)

const (
	clarification = `{"questions":[{"id":"q1","question":"Which?","schema":{"type":"string"},"context":{"hint":"x"}},{"id":"q2","question":"When?"}],"contextType":"form"}`
	goodNote      = `{"text":"hello"}`
)

// A document that would fail at every step: each refusal must be the one of
// the earliest step (OpenWOP envelope contract §6: nothing may be reordered).
func TestRun_ExecutesTheStepsInTheNormativeOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.accept(doc(note, goodNote)) // corr-1 is taken by a note
	f.head = f.log.Frames()[2].Head()

	type state struct {
		doc     string
		req     accept.Request
		policy  accept.Policy
		redact  error
		removed string
	}
	s := state{
		doc: doc("vendor.acme.unknown", `{"text":7}`, with("schemaVersion", 9), meta("ts", "yesterday", "contentTrust", "untrusted")),
		req: accept.Request{
			Contract: &accept.Contract{}, ApprovalContext: true,
			Counters: accept.Counters{EnvelopesPerTurn: &accept.Counter{Current: 5, Cap: 5}},
		},
		policy: accept.Policy{Disabled: true},
	}
	// Each stage fixes the error of the stage before.
	stages := []struct {
		code fault.Code
		mend func()
	}{
		{fault.CapabilityRequired, func() { s.policy.Disabled = false }},
		{fault.InvalidEnvelopeShape, func() {
			s.doc = doc("vendor.acme.unknown", `{"text":7}`, with("schemaVersion", 9), meta("contentTrust", "untrusted"), with("correlationId", "corr-2"))
		}},
		{fault.UnknownEnvelopeKind, func() { s.doc = strings.ReplaceAll(s.doc, "vendor.acme.unknown", note) }},
		{fault.UnknownSchemaVersion, func() { s.doc = strings.ReplaceAll(s.doc, `"schemaVersion":9`, `"schemaVersion":2`) }},
		{fault.EnvelopeInvalid, func() { s.doc = strings.ReplaceAll(s.doc, `{"text":7}`, goodNote) }},
		{fault.EnvelopeContractViolation, func() { s.req.Contract.Accepts = []string{note} }},
		{fault.CapBreached, func() { s.req.Counters = accept.Counters{} }},
		{fault.UntrustedBlocksApproval, func() {
			s.req.ApprovalContext = false
			s.doc = strings.ReplaceAll(s.doc, "corr-2", "corr-1")
			s.doc = strings.ReplaceAll(s.doc, note, "error")
			s.doc = strings.ReplaceAll(s.doc, goodNote, `{"code":"x","message":"y"}`)
			s.doc = strings.ReplaceAll(s.doc, `"schemaVersion":2`, `"schemaVersion":1`)
		}},
		{fault.EnvelopeCorrelationClash, func() { s.doc = strings.ReplaceAll(s.doc, "corr-1", "corr-3") }},
	}
	for _, st := range stages {
		f.policy = s.policy
		req := s.req
		req.Target, req.Document, req.NodeID = accept.Target{Run: theRun, Head: f.head}, []byte(s.doc), nodeID
		res, err := f.pipeline().Run(t.Context(), req)
		require.NoError(t, err)
		require.NotNil(t, res.Refusal, "want %s, got %s", st.code, res.Outcome)
		require.Equal(t, st.code, res.Refusal.Code, string(res.Outcome))
		f.nothingRecorded()
		st.mend()
	}
	accepted(t, f.accept(s.doc))
}

func TestRefusal_DoesNotBindItsCorrelationID(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	refused(t, f.accept(doc(note, `{"text":7}`)), accept.Invalid, fault.EnvelopeInvalid)
	f.nothingRecorded()
	res := f.accept(doc("error", `{"code":"x","message":"y"}`))
	accepted(t, res)
	require.False(t, res.Recalled)
}

func FuzzRun(f *testing.F) {
	f.Add([]byte(doc(note, goodNote)))
	f.Add([]byte(doc("clarification.request", clarification)))
	f.Add([]byte(doc("error", `{"code":"x","message":"y","reasoning":null}`, with("schemaVersion", json.Number("1.0")))))
	f.Add([]byte(`{"type":"error","type":"x"}`))
	f.Add([]byte(strings.Repeat("[", 100)))
	registry := newFixture(f).kinds
	f.Fuzz(func(t *testing.T, d []byte) {
		fx := newFixtureWith(t, registry)
		res, err := fx.pipeline().Run(t.Context(), fx.request(string(d)))
		require.NoError(t, err)
		require.True(t, json.Valid(res.Outcome))
		if res.Refusal != nil {
			fx.nothingRecorded()
			return
		}
		for _, e := range res.Events {
			require.True(t, json.Valid(e.AppendJSON(nil)))
		}
	})
}

func BenchmarkRun(b *testing.B) {
	f := newFixture(b)
	text := strings.Repeat("Two kilobytes of text in some thirty sentences. ", 40)
	p := f.pipeline()
	documents := func(i int) string {
		return doc(note, `{"text":"`+text+`"}`, with("correlationId", fmt.Sprint("corr-", i)))
	}
	b.Run("fresh", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			if i%100 == 0 { // a run of ordinary length
				f = newFixture(b)
				p = f.pipeline()
			}
			req := f.request(documents(i))
			b.StartTimer()
			res, err := p.Run(b.Context(), req)
			if err != nil || res.Refusal != nil {
				b.Fatal(err, res)
			}
			f.head = res.Head
		}
	})
	b.Run("refused", func(b *testing.B) {
		req := f.request(doc(note, `{"text":7,"x":"`+text+`"}`))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := p.Run(b.Context(), req); err != nil {
				b.Fatal(err)
			}
		}
	})
}
