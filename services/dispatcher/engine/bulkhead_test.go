package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/engine/cleartext"
	"waybill.dev/waybill/services/dispatcher/engine/quarantine"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// bad returns a pure node type that panics.
func bad() node.Catalog {
	return node.Catalog{"test.bad": {
		Class: node.Pure,
		Do:    func(node.Input) (node.Output, *wire.NodeError) { panic("boom of acme") },
	}}
}

// badDefinitions panic after skip reads.
type badDefinitions struct {
	oneDefinition
	skip atomic.Int32
}

func (b *badDefinitions) ByDigest(ctx context.Context, digest string) (*definition.Entry, error) {
	if b.skip.Add(-1) < 0 {
		panic("boom of acme")
	}
	return b.oneDefinition.ByDigest(ctx, digest)
}

func TestExecute_APanicEndsTheRunAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		defs      func(t *testing.T) engine.Definitions
		cancelled string
	}{
		"in a pure node": {defs: func(t *testing.T) engine.Definitions { return define(t, nodeJSON("a", "test.bad", "{}")) }},
		"in the run loop, and in the machine that would end the run": {defs: func(t *testing.T) engine.Definitions {
			return &badDefinitions{oneDefinition: define(t, nodeJSON("a", "core.noop", "{}"))}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, tc.defs(t), nil)
			var said bytes.Buffer
			r.said, r.moreTypes = &said, bad()
			r.exec = r.executor(r.defs, nil)
			r.create(t)
			r.next(t)
			requireFailedInside(t, r)
			require.Contains(t, said.String(), "goroutine", "the stack is in the process log")
			require.NotContains(t, said.String(), "boom of acme")
			require.Zero(t, r.exec.Active())
			waiting, held := r.log.Backlog()
			require.Zero(t, waiting+held)
		})
	}
}

// requireFailedInside checks that the run failed, and that its log does not have the panic's text.
func requireFailedInside(t *testing.T, r *rig) {
	t.Helper()
	st, frames := r.state(t)
	require.Equal(t, wire.StatusFailed, st.Status)
	require.Equal(t, string(fault.InternalError), st.Error.Code)
	require.Equal(t, subject.End, frames[len(frames)-1].Kind)
	for _, f := range frames {
		require.NotContains(t, string(f.Body), "boom")
		require.NotContains(t, string(f.Body), "goroutine")
	}
}

func TestExecute_APanicEndsRunningNodes(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, nodeJSON("w", "core.delay", `{"ms":3600000}`)+","+nodeJSON("d", "core.delay", `{"ms":1}`)+","+nodeJSON("a", "test.bad", "{}"),
		`{"id":"e","sourceNodeId":"d","targetNodeId":"a"}`), nil)
	r.moreTypes = bad()
	r.exec = r.executor(r.defs, nil)
	r.create(t)
	r.next(t)
	st, _ := r.state(t)
	require.Equal(t, wire.StatusRunning, st.Status)
	require.NoError(t, r.exec.Wake(t.Context(), theRun, lastFrame(t, r).Head()))
	r.ahead.Store(int64(1e9))
	r.next(t)
	requireFailedInside(t, r)
	st, _ = r.state(t)
	require.Equal(t, runstate.NodeCancelled, st.Nodes["w"].Status)
}

// The handler of an answer executes pure nodes. One that panics ends the run in the next session.
func TestResolve_APanicAfterTheAnswerEndsTheRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, gateNode+","+nodeJSON("a", "test.bad", "{}"),
		`{"id":"e","sourceNodeId":"gate","targetNodeId":"a"}`), nil)
	r.moreTypes = bad()
	r.exec = r.executor(r.defs, nil)
	r.create(t)
	r.next(t)
	got, err := r.exec.Resolve(t.Context(), "acme", "run_1", engine.Answer{NodeID: "gate", Answer: accept("ann").Answer})
	require.NoError(t, err, "the answer is recorded")
	require.Equal(t, "gate", got.NodeID)
	st, _ := r.state(t)
	require.Equal(t, runstate.NodeCompleted, st.Nodes["gate"].Status)
	r.next(t)
	requireFailedInside(t, r)
}

// panickingRedactor panics on the documents of an answer.
type panickingRedactor struct{ engine.Redactor }

func (p panickingRedactor) Redact(ctx context.Context, tenant, runID string, registered bool, docs [][]byte) ([][]byte, bool, error) {
	for _, d := range docs {
		if bytes.Contains(d, []byte(`"ann"`)) {
			panic("boom of acme")
		}
	}
	return p.Redactor.Redact(ctx, tenant, runID, registered, docs)
}

func TestResolve_AnAnswerThatPanicsEndsTheRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, gateNode), nil)
	r.create(t)
	r.next(t)
	r.wrapRedactor = func(inner engine.Redactor) engine.Redactor { return panickingRedactor{inner} }
	r.exec = r.executor(r.defs, nil)
	_, err := r.exec.Resolve(t.Context(), "acme", "run_1", engine.Answer{NodeID: "gate", Answer: accept("ann").Answer})
	require.ErrorIs(t, err, lifecycle.ErrPanic)
	requireFailedInside(t, r)
}

// panickingStore panics when a masked run is folded.
type panickingStore struct{ engine.CleartextStore }

func (panickingStore) Put(context.Context, subject.Run, int, string, []byte) error { return nil }
func (panickingStore) Get(context.Context, subject.Run, int, string) ([]byte, error) {
	panic("boom of acme")
}
func (panickingStore) Erase(context.Context, subject.Run) error { return nil }

func TestExecute_ARunWhoseFoldPanicsEndsByItsLastFrame(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		events []wire.EventType
		want   wire.Status
	}{
		"pending": {nil, wire.StatusFailed},
		"running": {[]wire.EventType{wire.EventRunStarted}, wire.StatusFailed},
		"paused":  {[]wire.EventType{wire.EventRunStarted, wire.EventRunPaused}, wire.StatusCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, define(t, nodeJSON("a", "core.noop", "{}")), nil)
			r.cleartext = panickingStore{}
			r.exec = r.executor(r.defs, nil)
			rec, err := json.Marshal(&wire.RunRecord{
				RunID:         "run_1",
				WorkflowID:    "wf",
				Owner:         wire.Owner{Tenant: "acme"},
				EngineVersion: 1,
				Masking:       "mask",
			})
			require.NoError(t, err)
			f := frame.NewStart(theRun, rec)
			f.Pos, err = r.log.Append(t.Context(), f, 0)
			require.NoError(t, err)
			var events []wire.Event
			for i, typ := range tc.events {
				events = append(events, wire.Draft{Type: typ, Payload: json.RawMessage("{}")}.Place("run_1", i, f.Stored))
			}
			if len(events) > 0 {
				_, err = r.log.Append(t.Context(), frame.New(theRun, subject.Step, f.Head(), events), f.Pos)
				require.NoError(t, err)
			}
			check := func() {
				frames, err := r.log.Run(t.Context(), theRun)
				require.NoError(t, err)
				require.NoError(t, frame.VerifyChain(frames))
				st, _, err := machine.Load(frames)
				require.NoError(t, err)
				require.Equal(t, tc.want, st.Status)
				require.Equal(t, subject.End, frames[len(frames)-1].Kind)
			}
			d, err := r.log.Next(t.Context())
			require.NoError(t, err)
			r.exec.Execute(t.Context(), seenBefore{d})
			check()
			r.exec.Execute(t.Context(), seenBefore{again{f}}) // the process died after it ended the run
			check()
		})
	}
}

// brokenLog panics on every read.
type brokenLog struct{ runlog.Log }

func (brokenLog) Run(context.Context, subject.Run) ([]*frame.Frame, error) { panic("boom of acme") }
func (brokenLog) Last(context.Context, subject.Run) (*frame.Frame, error)  { panic("boom of acme") }

func TestExecute_ARunThatCannotEvenBeEndedIsQuarantined(t *testing.T) {
	t.Parallel()
	r, w := newRig(t, define(t, nodeJSON("a", "core.noop", "{}")), nil), &ward{}
	r.quarantine = w
	r.create(t)
	d, err := r.log.Next(t.Context())
	require.NoError(t, err)
	r.executorOn(brokenLog{r.log}, r.defs, nil).Execute(t.Context(), seenBefore{d})
	require.Equal(t, []quarantine.Cause{{Reason: quarantine.ReasonPanic, Tries: 1}}, w.causes)
}

// tried is a delivery with a number of tries.
type tried struct {
	runlog.Delivery
	tries int
}

func (d tried) Tries() int      { return d.tries }
func (tried) Redelivered() bool { return true }

// lostDefinitions returns an error for every definition.
type lostDefinitions struct{ err error }

func (d lostDefinitions) ByDigest(context.Context, string) (*definition.Entry, error) {
	return nil, d.err
}

func TestExecute_QuarantinesARunAfterABoundedNumberOfDeliveries(t *testing.T) {
	t.Parallel()
	missing := fault.New(fault.WorkflowNotFound, "gone")
	for name, tc := range map[string]struct {
		err     error
		version int
		tries   int
		want    string // empty: the run is delivered again
	}{
		"a missing definition is tried again first":      {err: missing, tries: 9},
		"a missing definition":                           {err: missing, tries: 10, want: quarantine.ReasonDefinition},
		"any other failure":                              {err: errors.New("odd"), tries: 10, want: quarantine.ReasonFailing},
		"what is unavailable, for however long":          {err: fault.New(fault.ServiceUnavailable, "away"), tries: 300},
		"a log that is unavailable":                      {err: runlog.ErrUnavailable, tries: 300},
		"a later engine's, while newer ones may be near": {version: wire.EngineVersion + 1, tries: 79},
		"a later engine's that none takes": {
			version: wire.EngineVersion + 1,
			tries:   80,
			want:    quarantine.ReasonEngine,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w := newRig(t, lostDefinitions{tc.err}, nil), &ward{}
			r.quarantine = w
			r.exec = r.executor(r.defs, nil)
			r.begun(t, theRun, max(tc.version, 1))
			r.log.SetRetryDelay(0)
			for n := range tc.tries {
				d, err := r.log.Next(t.Context())
				require.NoError(t, err)
				r.exec.Execute(t.Context(), tried{d, 1000 + n}) // tries count deliveries lost in outages, too
			}
			waiting, held := r.log.Backlog()
			require.Zero(t, held)
			if tc.want == "" {
				require.Empty(t, w.causes)
				require.Equal(t, 1, waiting)
				return
			}
			require.Equal(t, []quarantine.Cause{{Reason: tc.want, Tries: tc.tries}}, w.causes)
			require.Zero(t, waiting)
		})
	}
}

func TestReadmit_ARunWithoutItsDefinitionStays(t *testing.T) {
	t.Parallel()
	r := newRig(t, lostDefinitions{fault.New(fault.WorkflowNotFound, "gone")}, nil)
	r.create(t)
	back, err := r.exec.Readmit(t.Context(), theRun)
	require.Error(t, err)
	require.False(t, back)
	_, frames := r.state(t)
	require.Len(t, frames, 1, "a check appends nothing")
}

func TestEndQuarantined_EndsARunWithoutItsDefinition(t *testing.T) {
	t.Parallel()
	defs := define(t, nodeJSON("w", "core.delay", `{"ms":3600000}`))
	r := newRig(t, defs, nil)
	r.create(t)
	r.next(t)
	r.exec = r.executor(lostDefinitions{fault.New(fault.WorkflowNotFound, "gone")}, nil)
	status, err := r.exec.EndQuarantined(t.Context(), "acme", "run_1", "definition lost", "ops")
	require.NoError(t, err)
	require.Equal(t, wire.StatusCancelled, status)
	st, frames := r.state(t)
	require.Equal(t, wire.StatusCancelled, st.Status)
	require.Equal(t, runstate.NodeCancelled, st.Nodes["w"].Status)
	require.Contains(t, string(frames[len(frames)-1].Body), `"reason":"definition lost"`)
	require.Contains(t, string(frames[len(frames)-1].Body), `"cancelledBy":"ops"`)

	status, err = r.exec.EndQuarantined(t.Context(), "acme", "run_1", "", "ops")
	require.NoError(t, err)
	require.Equal(t, wire.StatusCancelled, status)
	_, again := r.state(t)
	require.Len(t, again, len(frames))
}

func TestEndQuarantined_RefusesWhatCannotBeEnded(t *testing.T) {
	t.Parallel()
	gone := lostDefinitions{fault.New(fault.WorkflowNotFound, "gone")}
	t.Run("a damaged log", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, gone, nil)
		r.create(t)
		r.log.Damage(1)
		_, err := r.exec.EndQuarantined(t.Context(), "acme", "run_1", "", "ops")
		require.Equal(t, fault.Conflict, fault.CodeOf(err))
		require.ErrorContains(t, err, "restore the log from a backup")
		require.Len(t, r.log.Frames(), 1)
	})
	t.Run("a later engine's run", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, gone, nil)
		r.begun(t, theRun, wire.EngineVersion+1)
		_, err := r.exec.EndQuarantined(t.Context(), "acme", "run_1", "", "ops")
		require.Equal(t, fault.EngineVersionMismatch, fault.CodeOf(err))
	})
	t.Run("another tenant's run", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, gone, nil)
		r.create(t)
		_, err := r.exec.EndQuarantined(t.Context(), "other", "run_1", "", "ops")
		require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
	})
}

// goneStore has lost all clear values.
type goneStore struct{ engine.CleartextStore }

func (goneStore) Put(context.Context, subject.Run, int, string, []byte) error { return nil }
func (goneStore) Get(context.Context, subject.Run, int, string) ([]byte, error) {
	return nil, cleartext.ErrGone
}
func (goneStore) Erase(context.Context, subject.Run) error { return nil }

// A delivery does not entitle a dispatcher to end a run that another live one executes, also if it
// cannot fold the run: the owner may be of a release without the defect, or have the right key.
func TestExecute_ARunOfAnotherLiveDispatcherIsNotEnded(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]engine.CleartextStore{
		"its fold panics":           panickingStore{},
		"its clear values are gone": goneStore{},
	} {
		for owner, dead := range map[string]bool{"alive": false, "dead": true} {
			t.Run(name+", the owner is "+owner, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, define(t, nodeJSON("a", "core.noop", "{}")), nil)
				r.cleartext, r.alive = store, true
				if dead {
					r.dead.Store("other", true)
				}
				r.exec = r.executor(r.defs, nil)
				rec, err := json.Marshal(&wire.RunRecord{
					RunID: "run_1", WorkflowID: "wf", Owner: wire.Owner{Tenant: "acme"}, EngineVersion: 1, Masking: "mask",
				})
				require.NoError(t, err)
				start := frame.NewStart(theRun, rec)
				start.Pos, err = r.log.Append(t.Context(), start, 0)
				require.NoError(t, err)
				began := wire.Draft{Type: wire.EventRunStarted, Payload: json.RawMessage("{}")}.Place("run_1", 0, start.Stored)
				claim := frame.New(theRun, subject.Step, start.Head(), []wire.Event{began}).By(frame.Claimed("other-1", 1, false))
				claim.Pos, err = r.log.Append(t.Context(), claim, start.Pos)
				require.NoError(t, err)
				d, err := r.log.Next(t.Context())
				require.NoError(t, err)
				r.exec.Execute(t.Context(), seenBefore{d})
				last, err := r.log.Last(t.Context(), theRun)
				require.NoError(t, err)
				require.Equal(t, dead, last.Kind == subject.End, "%s", last.Kind)
			})
		}
	}
}
