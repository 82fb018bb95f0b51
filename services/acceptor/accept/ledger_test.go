package accept_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

var everyKind = map[string]string{
	note: goodNote, "clarification.request": clarification, "schema.request": `{"envelopeType":"error"}`,
	"schema.response": `{"envelopeType":"error","ack":true}`, "error": `{"code":"x","message":"sorry <b>&</b>"}`,
}

// OpenWOP envelope contract §9 and §26 case 10: after a crash and recovery the same
// envelope gets the same outcome.
func TestDedup_AnotherProcessGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	for kind, payload := range everyKind {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			first := f.accept(doc(kind, payload))
			accepted(t, first)
			frames := len(f.log.Frames())

			f.clock = func() time.Time { return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) }
			f.redactor = &redactor{}
			again := f.accept(doc(kind, payload)) // the caller still has the old head
			require.True(t, again.Recalled)
			require.Equal(t, string(first.Outcome), string(again.Outcome))
			require.Equal(t, string(first.Payload), string(again.Payload))
			require.Equal(t, first.Events, again.Events)
			require.Equal(t, first.Head, again.Head)
			require.Len(t, f.log.Frames(), frames, "one set of events")
		})
	}
}

// The recorded outcome is returned, whatever differs in the second document.
func TestDedup_TheFirstDocumentWins(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.accept(doc(note, goodNote))
	again := f.accept(doc(note, `{"text":"other"}`, with("envelopeId", "env-2"), meta("contentTrust", "untrusted")))
	require.Equal(t, string(first.Outcome), string(again.Outcome))
	require.Equal(t, "env-1", accepted(t, again).EnvelopeID)
}

func TestDedup_OtherTypeUnderOneIDConflicts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	accepted(t, f.accept(doc(note, goodNote)))
	r := refused(t, f.accept(doc("error", `{"code":"x","message":"y"}`)), accept.Invalid, fault.EnvelopeCorrelationClash)
	require.Equal(t, "/correlationId", r.Details[0].InstancePath)
}

func TestDedup_IsPerRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	accepted(t, f.accept(doc(note, goodNote)))
	fork := subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: "run-2"}
	start := frame.NewStart(fork, []byte(`{}`))
	pos, err := f.log.Append(t.Context(), start, 0)
	require.NoError(t, err)
	start.Pos = pos
	req := f.request(doc(note, goodNote))
	req.Target = accept.Target{Run: fork, Head: start.Head()}
	res, err := f.pipeline().Run(t.Context(), req)
	require.NoError(t, err)
	require.False(t, res.Recalled)
}

// Two envelopes of one kind in one turn get two outcomes (§26 case 9). The second needs
// no read of the log.
func TestRecord_SeveralEnvelopesOfOneTurn(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p := f.pipeline()
	for i := range 3 {
		req := f.request(doc(note, goodNote, with("correlationId", fmt.Sprint("corr-", i))))
		res, err := p.Run(t.Context(), req)
		require.NoError(t, err)
		require.False(t, res.Recalled)
		f.head = res.Head
		f.log.FailReads(runlog.ErrUnavailable) // all that follows is known
	}
	f.log.FailReads(nil)
	require.Len(t, f.events(), 5)
	require.NoError(t, frame.VerifyChain(f.log.Frames()))
}

// Events of the executor do not count as an accepted envelope.
func TestDedup_IgnoresExecutorEventsUnderTheSameID(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.step(
		wire.Draft{
			Type:        wire.EventLogAppended,
			CausationID: "corr-1",
			Payload:     []byte(`{"level":"warn","message":"discarded","fields":{"envelopeType":"x","envelopeId":"y","kind":"x"}}`),
		},
		wire.Draft{
			Type:        wire.EventCapBreached,
			CausationID: "corr-1",
			Payload:     []byte(`{"kind":"schema","limit":1,"observed":2}`),
		},
		wire.Draft{
			Type:        wire.EventNodeFailed,
			CausationID: "corr-1",
			Payload:     []byte(`{"nodeId":"ask","error":{"code":"envelope_invalid","message":"m"}}`),
		},
	)
	f.step(wire.Draft{Type: wire.EventLogAppended, CausationID: "corr-1", Payload: []byte(`{"fields":[1]}`)},
		wire.Draft{Type: wire.EventClarificationRequested, CausationID: "corr-1", Payload: []byte(`{"envelope":"x"}`)},
		wire.Draft{Type: wire.EventArtifactCreated, CausationID: "corr-1", Payload: []byte(`[]`)})
	res := f.accept(doc(note, goodNote))
	require.False(t, res.Recalled)
	accepted(t, res)
}

// The returned head is never before the caller's.
func TestLookup_HeadNeverGoesBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	old := f.head
	first := f.accept(doc(note, goodNote))
	require.Equal(t, old.Pos+1, first.Head.Pos)
	require.Equal(t, old.Next+1, first.Head.Next)
	f.head = first.Head
	f.step(wire.Draft{Type: wire.EventNodeCompleted, NodeID: nodeID})

	again := f.accept(doc(note, goodNote))
	require.Equal(t, f.head, again.Head, "the caller's head is later than the outcome")
	stale := f.accept(doc(note, goodNote), func(r *accept.Request) { r.Head = old })
	require.Equal(t, first.Head, stale.Head, "the head of the outcome, not of the log")
}

// racing runs win between dedup and record, like another acceptor.
type racing struct {
	runlog.Log
	once sync.Once
	win  func()
}

func (r *racing) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	r.once.Do(r.win)
	return r.Log.Append(ctx, f, after)
}

// A lost compare-and-set goes back to dedup (§6 step 11, §9).
func TestRecord_LoserOfARaceReturnsTheWinnersOutcome(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var won *accept.Result
	log := &racing{Log: f.log, win: func() { won = f.accept(doc(note, goodNote, with("envelopeId", "winner"))) }}
	later := func() time.Time { return f.clock().Add(time.Second) }
	p := accept.New(f.kinds, f.redactor, accept.NewLogLedger(log, later), later, f.policy)
	res, err := p.Run(t.Context(), f.request(doc(note, goodNote)))
	require.NoError(t, err)
	require.True(t, res.Recalled)
	require.Equal(t, string(won.Outcome), string(res.Outcome))
	require.Equal(t, won.Head, res.Head)
	require.Len(t, f.events(), 3)
}

// The caller's head is old. It must read the log first, or it would miss the events of
// another writer.
func TestRecord_ConflictWhenAnotherWriterExtendedTheRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	old := f.head
	f.step(wire.Draft{Type: wire.EventRunPaused})
	req := f.request(doc(note, goodNote))
	req.Head = old
	_, err := f.pipeline().Run(t.Context(), req)
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	require.ErrorIs(t, err, runlog.ErrConflict)
	f.nothingRecorded()
	accepted(t, f.accept(doc(note, goodNote)))
}

func TestRecord_TwoRacingPipelinesReturnOneOutcome(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const racers = 8
	var (
		wg      sync.WaitGroup
		results [racers]*accept.Result
		errs    [racers]error
	)
	for i := range racers {
		clock := func() time.Time { return f.clock().Add(time.Duration(i) * time.Second) }
		p := accept.New(f.kinds, f.redactor, accept.NewLogLedger(f.log, clock), clock, f.policy)
		req := f.request(doc(note, goodNote, with("envelopeId", fmt.Sprint("env-", i))))
		wg.Go(func() { results[i], errs[i] = p.Run(context.Background(), req) })
	}
	wg.Wait()
	fresh := 0
	for i := range racers {
		require.NoError(t, errs[i])
		require.Equal(t, string(results[0].Outcome), string(results[i].Outcome))
		require.Equal(t, results[0].Head, results[i].Head)
		if !results[i].Recalled {
			fresh++
		}
	}
	require.Equal(t, 1, fresh)
	require.Len(t, f.events(), 3)
}

// An append may succeed although its acknowledgement is lost.
func TestRecord_LostAcknowledgementIsNotRecordedTwice(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p := f.pipeline()
	f.log.LoseNextAck()
	_, err := p.Run(t.Context(), f.request(doc(note, goodNote)))
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	res, err := p.Run(t.Context(), f.request(doc(note, goodNote)))
	require.NoError(t, err)
	require.True(t, res.Recalled)
	require.Len(t, f.events(), 3)
}

func TestLookup_FaultsOfTheLog(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spoil func(*fixture, *accept.Request)
		code  fault.Code
	}{
		"unreachable": {
			func(f *fixture, _ *accept.Request) { f.log.FailReads(runlog.ErrUnavailable) },
			fault.ServiceUnavailable,
		},
		"unknown run":    {func(_ *fixture, r *accept.Request) { r.Run.RunID = "unknown" }, fault.RunNotFound},
		"log is behind":  {func(_ *fixture, r *accept.Request) { r.Head.Pos += 100 }, fault.ServiceUnavailable},
		"not a frame":    {func(_ *fixture, r *accept.Request) { r.Head.Pos = 0 }, fault.ValidationError},
		"other hash":     {func(_ *fixture, r *accept.Request) { r.Head.Hash = "x" }, fault.ValidationError},
		"other sequence": {func(_ *fixture, r *accept.Request) { r.Head.Next++ }, fault.ValidationError},
		"foreign failure": {
			func(f *fixture, _ *accept.Request) { f.log.FailReads(errors.New("disk on fire")) },
			fault.InternalError,
		},
		"append fails": {
			func(f *fixture, _ *accept.Request) { f.log.FailNext(runlog.ErrUnavailable) },
			fault.ServiceUnavailable,
		},
		"run has ended": {func(f *fixture, r *accept.Request) { f.end(); r.Head = f.head }, fault.RunTerminal},
		"ended later":   {func(f *fixture, _ *accept.Request) { f.end() }, fault.Conflict},
		"damaged frame": {func(f *fixture, r *accept.Request) { f.rubbish(); r.Head = f.head }, fault.InternalError},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			req := f.request(doc(note, goodNote))
			tc.spoil(f, &req)
			_, err := f.pipeline().Run(t.Context(), req)
			require.Equal(t, tc.code, fault.CodeOf(err), "%v", err)
			f.nothingRecorded()
		})
	}
}

func (f *fixture) end() {
	f.append(frame.New(theRun, subject.End, f.head, f.placed([]wire.Draft{{Type: wire.EventRunCompleted}})), f.head.Pos)
}

// rubbish appends a frame with an invalid body.
func (f *fixture) rubbish() {
	fr := frame.New(theRun, subject.Step, f.head, f.placed([]wire.Draft{{Type: wire.EventLogAppended}}))
	fr.Body = []byte(`{`)
	f.append(fr, f.head.Pos)
}

// The cache never decides: a cached run may have new frames.
func TestLogLedger_CacheIsBoundedAndNeverWrong(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p := f.pipeline()
	for i := range 300 { // beyond the ids remembered per run
		res, err := p.Run(t.Context(), f.request(doc(note, goodNote, with("correlationId", fmt.Sprint("corr-", i)))))
		require.NoError(t, err)
		require.False(t, res.Recalled)
		f.head = res.Head
	}
	for _, i := range []int{0, 150, 299} {
		res, err := p.Run(t.Context(), f.request(doc(note, goodNote, with("correlationId", fmt.Sprint("corr-", i)))))
		require.NoError(t, err)
		require.True(t, res.Recalled)
		require.Equal(t, f.head, res.Head)
	}
	require.Len(t, f.events(), 302)
}

func TestLogLedger_EvictsOldRunsAndReadsThemAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p := f.pipeline()
	runs := map[string]accept.Request{}
	for i := range 1100 { // beyond the runs remembered
		run := subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: fmt.Sprint("many-", i)}
		start := frame.NewStart(run, []byte(`{}`))
		pos, err := f.log.Append(t.Context(), start, 0)
		require.NoError(t, err)
		start.Pos = pos
		req := f.request(doc(note, goodNote))
		req.Target = accept.Target{Run: run, Head: start.Head()}
		res, err := p.Run(t.Context(), req)
		require.NoError(t, err)
		req.Head = res.Head
		runs[run.RunID] = req
	}
	for _, id := range []string{"many-0", "many-1099"} {
		res, err := p.Run(t.Context(), runs[id])
		require.NoError(t, err)
		require.True(t, res.Recalled)
	}
}

// Every event an outcome names carries cause, trust and node (§10).
func TestRecord_EventsCarryCauseTrustAndNode(t *testing.T) {
	t.Parallel()
	for kind, payload := range everyKind {
		f := newFixture(t)
		res := f.accept(doc(kind, payload, meta("contentTrust", "untrusted")))
		var ids []string
		for _, e := range res.Events {
			ids = append(ids, e.EventID)
			require.Equal(t, "corr-1", e.CausationID)
			require.Equal(t, wire.Untrusted, e.ContentTrust)
			require.Equal(t, nodeID, e.NodeID)
			require.NotEqual(t, kind, string(e.Type), "no event type per kind (C10)")
		}
		require.Equal(t, ids, accepted(t, res).RecordedEventIDs)
		var payloadDoc map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(res.Events[0].Payload, &payloadDoc))
		require.JSONEq(t, payload, string(res.Payload))
	}
}

// Two different envelopes race: one is recorded, the caller of the other must read the
// log first.
func TestRecord_OtherEnvelopeOfARaceMustReadFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var won *accept.Result
	log := &racing{Log: f.log, win: func() { won = f.accept(doc(note, goodNote, with("correlationId", "other"))) }}
	p := accept.New(f.kinds, f.redactor, accept.NewLogLedger(log, f.clock), f.clock, f.policy)
	_, err := p.Run(t.Context(), f.request(doc(note, goodNote)))
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	require.Len(t, f.events(), 3)

	f.head = won.Head
	res, err := p.Run(t.Context(), f.request(doc(note, goodNote)))
	require.NoError(t, err)
	require.False(t, res.Recalled)
	require.Equal(t, won.Head.Next+1, res.Head.Next)
	require.NoError(t, frame.VerifyChain(f.log.Frames()))
}

// An envelope is recorded at most once per correlationId and run, from any process.
func TestDedup_ManyKeysFromManyProcesses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	outcomes := map[string]string{}
	for round := range 3 {
		for i := range 20 {
			id := fmt.Sprint("corr-", (i*7+round)%20)
			res := f.accept(doc(note, goodNote, with("correlationId", id), with("envelopeId", fmt.Sprint("env-", round, "-", i))))
			require.Equal(t, round > 0, res.Recalled, "round %d %s", round, id)
			if first, seen := outcomes[id]; seen {
				require.Equal(t, first, string(res.Outcome))
			}
			outcomes[id] = string(res.Outcome)
			f.head = res.Head
		}
	}
	require.Len(t, f.events(), 22)
}

// A cancelled call returns the context's error and records nothing.
func TestRun_StopsWhenItsCallerCancels(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.pipeline().Run(ctx, f.request(doc(note, goodNote)))
	require.Error(t, err)
	f.nothingRecorded()
}
