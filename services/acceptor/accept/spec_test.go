package accept_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// Every row of the pipeline's table (OpenWOP envelope contract §6): what it
// refuses, with which status and code, and that a refusal records nothing.
// Details of a row are tested in the file of its step.
func TestPipelineTable_EveryRow(t *testing.T) {
	t.Parallel()
	one := &accept.Counter{Current: 1, Cap: 1}
	rows := []struct {
		row     string
		before  func(*fixture)
		doc     string
		change  func(*accept.Request)
		status  accept.Status
		code    fault.Code // empty means accepted
		exactly bool       // the reason is the code and nothing else
	}{
		{
			row:     "0 host capability",
			before:  func(f *fixture) { f.policy.Disabled = true },
			doc:     doc(note, goodNote),
			status:  accept.Invalid,
			code:    fault.CapabilityRequired,
			exactly: true,
		},
		{
			row:    "2 shape: not closed",
			doc:    doc(note, goodNote, with("more", 1)),
			status: accept.Invalid,
			code:   fault.InvalidEnvelopeShape,
		},
		{
			row:    "2 shape: no time",
			doc:    doc(note, goodNote, meta("ts", "noon")),
			status: accept.Invalid,
			code:   fault.InvalidEnvelopeShape,
		},
		{row: "3 kind", doc: doc("vendor.acme.other", goodNote), status: accept.Gated, code: fault.UnknownEnvelopeKind},
		{
			row:    "4a version: higher",
			doc:    doc(note, goodNote, with("schemaVersion", 3)),
			status: accept.Invalid,
			code:   fault.UnknownSchemaVersion,
		},
		{
			row:    "4a version: lower, strict",
			before: func(f *fixture) { f.policy.Strict = true },
			doc:    doc(note, goodNote, with("schemaVersion", 1)),
			status: accept.Invalid,
			code:   fault.UnknownSchemaVersion,
		},
		{row: "4b payload", doc: doc(note, `{}`), status: accept.Invalid, code: fault.EnvelopeInvalid},
		{
			row:    "5 contract",
			doc:    doc(note, goodNote),
			change: func(r *accept.Request) { r.Contract = &accept.Contract{} },
			status: accept.Gated,
			code:   fault.EnvelopeContractViolation,
		},
		{
			row:    "6 limits: turn",
			doc:    doc(note, goodNote),
			change: func(r *accept.Request) { r.Counters.EnvelopesPerTurn = one },
			status: accept.Breached,
			code:   fault.CapBreached,
		},
		{
			row:    "6 limits: schema",
			doc:    doc("schema.request", `{"envelopeType":"error"}`),
			change: func(r *accept.Request) { r.Counters.SchemaRounds = one },
			status: accept.Breached,
			code:   fault.CapBreached,
		},
		{
			row:    "6 limits: clarification",
			doc:    doc("clarification.request", clarification),
			change: func(r *accept.Request) { r.Counters.ClarificationRounds = one },
			status: accept.Breached,
			code:   fault.CapBreached,
		},
		{
			row:     "8b approval context",
			doc:     doc(note, goodNote, meta("contentTrust", "untrusted")),
			change:  func(r *accept.Request) { r.ApprovalContext = true },
			status:  accept.Invalid,
			code:    fault.UntrustedBlocksApproval,
			exactly: true,
		},
		{
			row:    "9 dedup: other type",
			before: func(f *fixture) { f.head = f.accept(doc(note, goodNote)).Head },
			doc:    doc("error", `{"code":"x","message":"y"}`),
			status: accept.Invalid,
			code:   fault.EnvelopeCorrelationClash,
		},
		{row: "12 accepted", doc: doc(note, goodNote), status: accept.Accepted},
	}
	for _, tc := range rows {
		t.Run(tc.row, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			if tc.before != nil {
				tc.before(f)
			}
			res := f.accept(tc.doc, func(r *accept.Request) {
				if tc.change != nil {
					tc.change(r)
				}
			})
			require.Equal(t, tc.status, accept.StatusOf(res.Outcome), string(res.Outcome))
			if tc.code == "" {
				return
			}
			r := refused(t, res, tc.status, tc.code)
			require.Equal(t, tc.exactly, r.Reason() == string(tc.code))
			require.Equal(t, f.head, res.Head, "the head is unchanged")
			f.nothingRecorded()
		})
	}
}

// The rows that never refuse.
func TestPipelineTable_RowsThatAlwaysPass(t *testing.T) {
	t.Parallel()
	t.Run("7 redaction", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		res := f.accept(doc(note, `{"text":"`+canary+`"}`))
		accepted(t, res)
		require.JSONEq(t, `{"text":"`+marker+`"}`, string(res.Payload))
		require.EqualValues(t, 1, f.redactor.calls.Load())
	})
	t.Run("8 trust", func(t *testing.T) {
		t.Parallel()
		res := newFixture(t).accept(doc(note, goodNote), func(r *accept.Request) { r.Boundary = wire.Untrusted })
		require.Equal(t, wire.Untrusted, accepted(t, res).NormalizedMeta.ContentTrust)
	})
	t.Run("9 dedup: same type", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		first := f.accept(doc(note, goodNote))
		again := f.accept(doc(note, goodNote))
		require.True(t, again.Recalled)
		require.Equal(t, string(first.Outcome), string(again.Outcome))
	})
	t.Run("10 and 11 route and record", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		res := f.accept(doc("clarification.request", clarification))
		frames := f.log.Frames()
		last := frames[len(frames)-1]
		require.Equal(t, []wire.EventType{
			wire.EventClarificationRequested, wire.EventInterruptRequested,
		}, last.Types, "one batch")
		require.Equal(t, last.Head(), res.Head)
		require.NoError(t, frame.VerifyChain(frames))
	})
}

// The edge cases that concern the acceptor (OpenWOP envelope contract §26), by row number.
func TestEdgeCases(t *testing.T) {
	t.Parallel()
	shapeless := func(t *testing.T, d string) {
		t.Helper()
		f := newFixture(t)
		refused(t, f.accept(d), accept.Invalid, fault.InvalidEnvelopeShape)
		f.nothingRecorded()
	}
	cases := map[string]func(t *testing.T){
		"05 duplicate keys": func(t *testing.T) {
			shapeless(t, strings.Replace(doc(note, `{"text":"a"}`), `"text":"a"`, `"text":"a","\u0074ext":"b"`, 1))
		},
		"05 huge nesting":    func(t *testing.T) { shapeless(t, doc(note, strings.Repeat("[", 2000)+strings.Repeat("]", 2000))) },
		"05 over the size":   func(t *testing.T) { shapeless(t, doc(note, `{"text":"`+strings.Repeat("x", 2<<20)+`"}`)) },
		"06 large integers":  func(t *testing.T) { edgeNumbers(t) },
		"07 version 1.0":     func(t *testing.T) { edgeVersion(t) },
		"08 February 30":     func(t *testing.T) { shapeless(t, doc(note, goodNote, meta("ts", "2026-02-30T00:00:00Z"))) },
		"09 two in one turn": func(t *testing.T) { edgeTwoInOneTurn(t) },
		"10 crash after append": func(t *testing.T) {
			f := newFixture(t)
			first := f.accept(doc("clarification.request", clarification))
			again := f.accept(doc("clarification.request", clarification)) // another process, with the old head
			require.Equal(t, string(first.Outcome), string(again.Outcome))
			require.Len(t, f.events(), 4, "one set of events")
		},
		"12 redactor down": func(t *testing.T) {
			f := newFixture(t)
			f.redactor.err = fault.New(fault.ServiceUnavailable, "down")
			_, err := f.pipeline().Run(t.Context(), f.request(doc(note, goodNote)))
			require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
			f.nothingRecorded()
			f.redactor.err = nil
			accepted(t, f.accept(doc(note, goodNote)))
		},
		"14 secret as a key": func(t *testing.T) {
			f := newFixture(t)
			res := f.accept(doc(note, `{"text":"x","more":{"`+canary+`":1}}`, meta("label", canary)))
			accepted(t, res)
			require.NotContains(t, string(f.log.Frames()[2].Body), canary)
		},
		"14 secret in an id":   func(t *testing.T) { shapeless(t, doc(note, goodNote, with("correlationId", canary))) },
		"15 offending value":   func(t *testing.T) { edgeOffendingValue(t) },
		"16 universal listed":  func(t *testing.T) { edgeUniversalListed(t) },
		"17 cap 0":             func(t *testing.T) { edgeCapZero(t) },
		"18 untrusted surface": func(t *testing.T) { edgeUntrustedSurface(t) },
	}
	for name, run := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t)
		})
	}
}

func edgeNumbers(t *testing.T) {
	f := newFixture(t)
	res := f.accept(doc(note, `{"text":"x","n":9007199254740993}`))
	accepted(t, res)
	require.Contains(t, string(res.Events[0].AppendJSON(nil)), `"n":9007199254740993`)
}

func edgeVersion(t *testing.T) {
	f := newFixture(t)
	f.policy.Strict = true
	accepted(t, f.accept(strings.Replace(doc("error", `{"code":"x","message":"y"}`), `"schemaVersion":1`, `"schemaVersion":1.0`, 1)))
}

func edgeTwoInOneTurn(t *testing.T) {
	f := newFixture(t)
	first := f.accept(doc("clarification.request", clarification, with("correlationId", "turn-0")))
	f.head = first.Head
	second := f.accept(doc("clarification.request", clarification, with("correlationId", "turn-1")))
	require.NotEqual(t, string(first.Outcome), string(second.Outcome))
	var a, b struct{ InterruptID string }
	require.NoError(t, json.Unmarshal(first.Events[1].Payload, &a))
	require.NoError(t, json.Unmarshal(second.Events[1].Payload, &b))
	require.NotEqual(t, a.InterruptID, b.InterruptID)
}

func edgeOffendingValue(t *testing.T) {
	f := newFixture(t)
	res := f.accept(doc("error", `{"code":"","message":7,"details":"the-offending-value"}`))
	r := refused(t, res, accept.Invalid, fault.EnvelopeInvalid)
	require.Len(t, r.Details, 3)
	require.NotContains(t, string(res.Outcome)+fmt.Sprint(res.Attributes), "offending")
}

func edgeUniversalListed(t *testing.T) {
	accepted(t, newFixture(t).accept(doc("error", `{"code":"x","message":"y"}`), func(r *accept.Request) {
		r.Contract = &accept.Contract{Accepts: wire.Universals()}
	}))
}

func edgeCapZero(t *testing.T) {
	for kind, payload := range everyKind {
		f := newFixture(t)
		zero := &accept.Counter{}
		res := f.accept(doc(kind, payload), func(r *accept.Request) {
			r.Counters = accept.Counters{EnvelopesPerTurn: zero, SchemaRounds: zero, ClarificationRounds: zero}
		})
		require.Equal(t, 1, refused(t, res, accept.Breached, fault.CapBreached).Observed)
	}
}

func edgeUntrustedSurface(t *testing.T) {
	f := newFixture(t)
	untrusted := doc(accept.KindSurface, surfaceWith("", ""), meta("contentTrust", "untrusted"))
	res := f.accept(untrusted, func(r *accept.Request) { r.ApprovalContext = true })
	refused(t, res, accept.Invalid, fault.UntrustedBlocksApproval)
	accepted(t, f.accept(untrusted)) // without an approval it is accepted
}

// Invariants for any document in any context.
func TestRun_InvariantsHoldForAnyDocument(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		f := newFixture(t)
		f.policy.Strict = rapid.Bool().Draw(rt, "strict")
		d := drawDocument(rt)
		req := f.request(d)
		drawSurroundings(rt, &req)

		res, err := f.pipeline().Run(t.Context(), req)
		require.NoError(t, err)
		require.NoError(t, strictjson.Check(res.Outcome, strictjson.Limits{}))
		shown := string(res.Outcome) + string(res.Payload) + fmt.Sprint(res.Attributes)
		require.NotContains(t, shown, canary)
		if res.Refusal != nil {
			f.nothingRecorded()
			return
		}
		for _, fr := range f.log.Frames() {
			require.NotContains(t, string(fr.Body), canary)
		}
		require.NoError(t, frame.VerifyChain(f.log.Frames()))
		if len(res.Events) == 0 { // a fragment
			f.nothingRecorded()
			return
		}
		f.clock = func() time.Time { return time.Unix(0, 0) }
		again, err := f.pipeline().Run(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, string(res.Outcome), string(again.Outcome))
		require.Equal(t, string(res.Payload), string(again.Payload))
		require.Equal(t, res.Head, again.Head)
	})
}

// drawDocument makes a document of a known kind, with secrets at random places.
func drawDocument(t *rapid.T) string {
	kinds := []string{note, "clarification.request", "schema.request", "schema.response", "error"}
	kind := rapid.SampledFrom(kinds).Draw(t, "kind")
	payload := everyKind[rapid.SampledFrom([]string{kind, kind, kind, note}).Draw(t, "payload of")]
	if rapid.Bool().Draw(t, "secret in payload") {
		payload = strings.Replace(payload, "hello", canary, 1)
		payload = strings.Replace(payload, "Which?", "Which "+canary+"?", 1)
		payload = strings.Replace(payload, "hint", canary, 1)
		payload = strings.Replace(payload, "sorry", canary+`\n`, 1)
	}
	text := func(name string) string {
		return rapid.SampledFrom([]string{"id-1", "id-1", "id-1", canary, "ü", "a:b:c"}).Draw(t, name)
	}
	set := map[string]any{
		"envelopeId":    text("envelopeId"),
		"correlationId": text("correlationId"),
		"schemaVersion": rapid.IntRange(0, 3).Draw(t, "version"),
	}
	if rapid.Bool().Draw(t, "partial") {
		set["partial"] = map[string]any{"isPartial": rapid.Bool().Draw(t, "isPartial"), "index": 0, "total": -1}
	}
	tags := []any{"label", rapid.SampledFrom([]string{"x", canary}).Draw(t, "label")}
	if rapid.Bool().Draw(t, "tagged") {
		tags = append(tags, "contentTrust", rapid.SampledFrom([]string{"trusted", "untrusted"}).Draw(t, "trust"))
	}
	return doc(kind, payload, set, meta(tags...))
}

// drawSurroundings adds a random context to a request.
func drawSurroundings(t *rapid.T, r *accept.Request) {
	if rapid.Bool().Draw(t, "contract") {
		r.Contract = &accept.Contract{Accepts: rapid.SampledFrom([][]string{nil, {note}, {"error"}}).Draw(t, "accepts")}
	}
	r.ApprovalContext = rapid.Bool().Draw(t, "approval")
	r.Boundary = rapid.SampledFrom([]wire.Trust{"", wire.Trusted, wire.Untrusted}).Draw(t, "boundary")
	counter := func(name string) *accept.Counter {
		if !rapid.Bool().Draw(t, name+" limited") {
			return nil
		}
		return &accept.Counter{Current: rapid.IntRange(0, 3).Draw(t, name), Cap: 3}
	}
	r.Counters = accept.Counters{
		EnvelopesPerTurn:    counter("turn"),
		SchemaRounds:        counter("schema"),
		ClarificationRounds: counter("clarification"),
	}
}
