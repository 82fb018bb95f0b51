package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/engine/cleartext"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// ofCall returns the preceding events of a model call.
func ofCall(types ...wire.EventType) (drafts []wire.Draft) {
	for _, typ := range types {
		drafts = append(drafts, wire.Draft{Type: typ, NodeID: "n", Payload: json.RawMessage(`{"nodeId":"n","model":"mini"}`)})
	}
	return drafts
}

// records appends an envelope's events and the preceding ones, as the acceptor does.
func records(ctx context.Context, log runlog.Log, r subject.Run, head frame.Head, preceding []wire.Draft) (engine.Accepted, error) {
	var events []wire.Event
	for i, d := range append(slices.Clone(preceding), wire.Draft{
		Type:        wire.EventArtifactCreated,
		NodeID:      "n",
		CausationID: "c",
		Payload:     json.RawMessage(`{"nodeId":"n","artifactType":"k","payload":{}}`),
	}) {
		events = append(events, d.Place(r.RunID, head.Next+i, time.Now()))
	}
	f := frame.New(r, subject.Step, head, events)
	var err error
	if f.Pos, err = log.Append(ctx, f, head.Pos); err != nil {
		return engine.Accepted{}, err
	}
	n := len(preceding)
	return engine.Accepted{
		Head:      f.Head(),
		Preceding: events[:n],
		Events:    events[n:],
		Outcome:   model.Outcome{Status: "accepted"},
	}, nil
}

// calls is a model node that submits one envelope with preceding events. Its result has the
// preceding events that the acceptor did not record.
func calls(preceding ...wire.Draft) models {
	return func(ctx context.Context, _ model.Task, j model.Journal) model.Result {
		o, err := j.Accept(ctx, model.AcceptRequest{NodeID: "n", Preceding: preceding})
		if err != nil {
			return model.Result{Interrupted: err}
		}
		res := model.Result{Output: node.Output{}}
		if !o.Preceded {
			res.Drafts = preceding
		}
		if o.Status != "accepted" {
			res.Err = &wire.NodeError{Code: "envelope_invalid", Message: o.Reason}
		}
		return res
	}
}

// shape returns the event types of a log, frame by frame.
func shape(frames []*frame.Frame) string {
	var out []string
	for _, f := range frames[1:] {
		var types []string
		for _, t := range f.Types {
			types = append(types, string(t))
		}
		out = append(out, strings.Join(types, " "))
	}
	return strings.Join(out, " | ")
}

const begins = "run.started node.started"

// A completed model call takes two appends. Its usage and its envelope share a frame, and its node
// ends in the next one (OpenWOP envelope contract §14.5).
func TestAccept_AppendsACallInTwoFrames(t *testing.T) {
	t.Parallel()
	one := define(t, nodeJSON("n", "core.ai.callPrompt", "{}"))
	r := newRig(t, nil, nil)
	r.count = &tally{}
	r.acceptor = acceptor(func(ctx context.Context, of subject.Run, head frame.Head, req model.AcceptRequest) (engine.Accepted, error) {
		return records(ctx, r.log, of, head, req.Preceding)
	})
	r.exec = r.executor(one, calls(ofCall(wire.EventProviderUsage, wire.EventEnvelopeRecovery)...))
	r.create(t)
	r.next(t)
	st, frames := r.state(t)
	require.Equal(t, begins+" | provider.usage envelope.recovery.applied artifact.created | node.completed run.completed", shape(frames))
	require.Equal(t, 1, st.Cost.Calls)
	require.Equal(t, 1, strings.Count(strings.Join(r.count.events, " "), string(wire.EventProviderUsage)), "counted like this process's own appends")
}

// Preceding events that the acceptor does not record are recorded with the node's next events,
// once.
func TestAccept_RecordsUnusedPrecedingEventsLater(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer func(ctx context.Context, log runlog.Log, of subject.Run, head frame.Head) (engine.Accepted, error)
		want   string
	}{
		"a refusal records nothing": {
			func(_ context.Context, _ runlog.Log, _ subject.Run, head frame.Head) (engine.Accepted, error) {
				return engine.Accepted{Head: head, Outcome: model.Outcome{Status: "invalid", Reason: "envelope_invalid: no"}}, nil
			}, begins + " | provider.usage node.failed run.failed",
		},
		"an acceptor of an older release records the envelope alone": {
			func(ctx context.Context, log runlog.Log, of subject.Run, head frame.Head) (engine.Accepted, error) {
				return records(ctx, log, of, head, nil)
			}, begins + " | artifact.created | provider.usage node.completed run.completed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil, nil)
			r.acceptor = acceptor(func(ctx context.Context, of subject.Run, head frame.Head, _ model.AcceptRequest) (engine.Accepted, error) {
				return tc.answer(ctx, r.log, of, head)
			})
			r.exec = r.executor(define(t, nodeJSON("n", "core.ai.callPrompt", "{}")), calls(ofCall(wire.EventProviderUsage)...))
			r.create(t)
			r.next(t)
			_, frames := r.state(t)
			require.Equal(t, tc.want, shape(frames))
		})
	}
}

// Events that may not precede an envelope, or that another envelope caused, get a frame of their
// own before the envelope's.
func TestAccept_AppendsOtherEventsBeforeTheEnvelope(t *testing.T) {
	t.Parallel()
	caused := ofCall(wire.EventProviderUsage)
	caused[0].CausationID = "another"
	for name, preceding := range map[string][]wire.Draft{
		"another type":          ofCall(wire.EventProviderUsage, wire.EventLogAppended),
		"caused by an envelope": caused,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil, nil)
			r.acceptor = acceptor(func(ctx context.Context, of subject.Run, head frame.Head, req model.AcceptRequest) (engine.Accepted, error) {
				require.Empty(t, req.Preceding)
				return records(ctx, r.log, of, head, nil)
			})
			r.exec = r.executor(define(t, nodeJSON("n", "core.ai.callPrompt", "{}")), calls(preceding...))
			r.create(t)
			r.next(t)
			_, frames := r.state(t)
			var types []string
			for _, d := range preceding {
				types = append(types, string(d.Type))
			}
			require.Equal(t, begins+" | "+strings.Join(types, " ")+" | artifact.created | node.completed run.completed", shape(frames))
		})
	}
}

// If both exceed the log's limit together, or the acceptor rejects the preceding events, each gets
// its own frame.
func TestAccept_UsesTwoFramesIfOneIsTooLarge(t *testing.T) {
	t.Parallel()
	for _, refusal := range []*fault.Error{
		fault.New(fault.PayloadTooLarge, "not that"),
		fault.New(fault.ValidationError, "preceding: not that").With("field", "preceding"),
	} {
		r := newRig(t, nil, nil)
		r.acceptor = acceptor(func(ctx context.Context, of subject.Run, head frame.Head, req model.AcceptRequest) (engine.Accepted, error) {
			if len(req.Preceding) > 0 {
				return engine.Accepted{}, refusal
			}
			return records(ctx, r.log, of, head, nil)
		})
		r.exec = r.executor(define(t, nodeJSON("n", "core.ai.callPrompt", "{}")), calls(ofCall(wire.EventProviderUsage)...))
		r.create(t)
		r.next(t)
		_, frames := r.state(t)
		require.Equal(t, begins+" | provider.usage | artifact.created | node.completed run.completed", shape(frames), refusal)
	}
}

// If the acceptor rejects the request itself, the envelope is not submitted again without its
// preceding events, and the model is not called again. The call is recorded.
func TestAccept_SubmitsARejectedEnvelopeOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	asked := 0
	r.acceptor = acceptor(func(context.Context, subject.Run, frame.Head, model.AcceptRequest) (engine.Accepted, error) {
		asked++
		return engine.Accepted{}, fault.New(fault.ValidationError, "node_id: must not be empty")
	})
	r.exec = r.executor(define(t, nodeJSON("n", "core.ai.callPrompt", "{}")), calls(ofCall(wire.EventProviderUsage)...))
	r.create(t)
	r.next(t)
	st, frames := r.state(t)
	require.Equal(t, 1, asked)
	require.Equal(t, begins+" | provider.usage | node.failed run.failed", shape(frames))
	require.Equal(t, string(fault.InternalError), st.Nodes["n"].Error.Code)
	require.NotContains(t, st.Nodes["n"].Error.Message, "node_id", "the cause is for the operator")
}

// If the log accepts the envelope in no form, the node fails and its call is recorded.
func TestAccept_RecordsTheCallOfARejectedEnvelope(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	r.acceptor = acceptor(func(context.Context, subject.Run, frame.Head, model.AcceptRequest) (engine.Accepted, error) {
		return engine.Accepted{}, fault.New(fault.PayloadTooLarge, "what the envelope causes is too large")
	})
	r.exec = r.executor(define(t, nodeJSON("n", "core.ai.callPrompt", "{}")), calls(ofCall(wire.EventProviderUsage)...))
	r.create(t)
	r.next(t)
	_, frames := r.state(t)
	require.Equal(t, begins+" | provider.usage | node.failed run.failed", shape(frames))
}

// If the acceptor is unreachable, or its answer is lost, the call is recorded once, whether or not
// the acceptor appended. A second model call is recorded, too.
func TestAccept_RecordsACallOnceDespiteALostAcceptor(t *testing.T) {
	t.Parallel()
	lost := fault.New(fault.ServiceUnavailable, "the acceptor cannot be reached")
	for name, tc := range map[string]struct {
		first func(ctx context.Context, log runlog.Log, of subject.Run, head frame.Head, req model.AcceptRequest) error
		// again reports that the log has no outcome, so that the model is called again.
		again bool
		want  string
	}{
		"before its append": {
			func(context.Context, runlog.Log, subject.Run, frame.Head, model.AcceptRequest) error {
				return lost
			}, true,
			begins + " | provider.usage | log.appended | provider.usage artifact.created | node.completed run.completed",
		},
		"after its append": {
			func(ctx context.Context, log runlog.Log, of subject.Run, head frame.Head, req model.AcceptRequest) error {
				_, err := records(ctx, log, of, head, req.Preceding)
				return errors.Join(lost, err)
			}, false, begins + " | provider.usage artifact.created |  | node.completed run.completed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil, nil)
				var asked atomic.Int32
				r.acceptor = acceptor(func(ctx context.Context, of subject.Run, head frame.Head, req model.AcceptRequest) (engine.Accepted, error) {
					if asked.Add(1) == 1 {
						return engine.Accepted{}, tc.first(ctx, r.log, of, head, req)
					}
					return records(ctx, r.log, of, head, req.Preceding)
				})
				call, begun := calls(ofCall(wire.EventProviderUsage)...), 0
				r.exec = r.executor(define(t, nodeJSON("n", "core.ai.callPrompt", "{}")), models(func(ctx context.Context, task model.Task, j model.Journal) model.Result {
					if begun++; begun > 1 && !tc.again {
						return model.Result{Output: node.Output{}} // the outcome is in the log
					}
					return call(ctx, task, j)
				}))
				r.create(t)
				r.next(t)
				if st, _ := r.state(t); !st.Status.Terminal() {
					r.next(t)
				}
				_, frames := r.state(t)
				require.Equal(t, tc.want, shape(frames))
			})
		})
	}
}

// A late append of the acceptor conflicts with what the session recorded since.
func TestAccept_FencesAnAppendThatComesLate(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	var late func() error
	r.acceptor = acceptor(func(_ context.Context, of subject.Run, head frame.Head, req model.AcceptRequest) (engine.Accepted, error) {
		if late == nil {
			late = func() error {
				_, err := records(context.Background(), r.log, of, head, req.Preceding)
				return err
			}
			return engine.Accepted{}, errors.New("no answer in time")
		}
		require.ErrorIs(t, late(), runlog.ErrConflict)
		return records(t.Context(), r.log, of, head, req.Preceding)
	})
	r.exec = r.executor(define(t, nodeJSON("n", "core.ai.callPrompt", "{}")), calls(ofCall(wire.EventProviderUsage)...))
	r.create(t)
	r.next(t)
	r.next(t)
	_, frames := r.state(t)
	require.Equal(t, begins+" | provider.usage | log.appended | provider.usage artifact.created | node.completed run.completed", shape(frames))
}

// An outcome that was recorded before gets no preceding events, at any place in the log.
func TestAccept_RecordsTheCallOfARecalledOutcome(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	var before engine.Accepted
	r.acceptor = acceptor(func(ctx context.Context, of subject.Run, head frame.Head, req model.AcceptRequest) (engine.Accepted, error) {
		if before.Events != nil {
			before.Preceding = nil
			return before, nil
		}
		var err error
		before, err = records(ctx, r.log, of, head, req.Preceding)
		return before, err
	})
	r.exec = r.executor(define(t, nodeJSON("n", "core.ai.callPrompt", "{}")), models(func(ctx context.Context, task model.Task, j model.Journal) model.Result {
		first, err := j.Accept(ctx, model.AcceptRequest{NodeID: "n", Preceding: ofCall(wire.EventProviderUsage)})
		require.NoError(t, err)
		require.True(t, first.Preceded)
		return calls(ofCall(wire.EventProviderUsage)...)(ctx, model.Task{}, j)
	}))
	r.create(t)
	r.next(t)
	st, frames := r.state(t)
	require.Equal(t, begins+" | provider.usage artifact.created | provider.usage node.completed run.completed", shape(frames))
	require.Equal(t, 2, st.Cost.Calls)
}

// A node's events never get more trust than its earlier ones, even if the acceptor appends them
// (OpenWOP envelope contract §12).
func TestAccept_TagsWhatTheAcceptorAppends(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	r.acceptor = acceptor(func(ctx context.Context, of subject.Run, head frame.Head, req model.AcceptRequest) (engine.Accepted, error) {
		require.Equal(t, wire.Untrusted, req.Preceding[0].Trust)
		return records(ctx, r.log, of, head, req.Preceding)
	})
	call := calls(ofCall(wire.EventProviderUsage)...)
	r.exec = r.executor(define(t, nodeJSON("n", "core.ai.callPrompt", "{}")), models(func(ctx context.Context, task model.Task, j model.Journal) model.Result {
		d := chunk("n")
		d.Trust = wire.Untrusted
		require.NoError(t, j.Record(ctx, d))
		return call(ctx, task, j)
	}))
	r.create(t)
	r.next(t)
	_, frames := r.state(t)
	require.Equal(t, begins+" | output.chunk | provider.usage artifact.created | node.completed run.completed", shape(frames))
}

// The session appends the events of a masked run, because the acceptor does not mask.
func TestAccept_AppendsTheEventsOfAMaskedRunItself(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	v, err := cleartext.New(kvmemory.New(), []byte(strings.Repeat("k", 32)))
	require.NoError(t, err)
	x := engine.New(engine.Config{
		Limits:  machine.Limits{MaxNodeExecutions: 10, MaxDuration: time.Hour, MaxParallel: 4},
		AckWait: 3 * time.Minute,
	}, engine.Deps{
		Storage: engine.Storage{
			Log:         r.log,
			Cleartext:   v,
			Definitions: define(t, nodeJSON("n", "core.ai.callPrompt", "{}")),
		},
		Services: engine.Services{
			Redactor: r.red,
			Models:   calls(ofCall(wire.EventProviderUsage)...),
			Acceptor: acceptor(func(ctx context.Context, of subject.Run, head frame.Head, req model.AcceptRequest) (engine.Accepted, error) {
				require.Empty(t, req.Preceding)
				return records(ctx, r.log, of, head, nil)
			}),
		},
		Rules: engine.Rules{Types: node.Builtin()},
		Timers: engine.Timers{
			Wait:   func(subject.Run, frame.Head, time.Time) {},
			Forget: func(string, string) {},
		},
		Telemetry: engine.Telemetry{Logger: slog.New(slog.DiscardHandler)},
		Clock:     time.Now,
	})
	rec, err := json.Marshal(&wire.RunRecord{
		RunID:         "run_1",
		WorkflowID:    "wf",
		Owner:         wire.Owner{Tenant: "acme"},
		EngineVersion: 1,
		Masking:       "mask",
	})
	require.NoError(t, err)
	require.NoError(t, v.Put(t.Context(), theRun, 0, "starter", rec))
	_, err = r.log.Append(t.Context(), frame.NewStart(theRun, rec).By("starter"), 0)
	require.NoError(t, err)
	d, err := r.log.Next(t.Context())
	require.NoError(t, err)
	x.Execute(t.Context(), d)
	_, frames := r.state(t)
	require.Equal(t, begins+" | provider.usage | artifact.created | node.completed run.completed", shape(frames))
}
