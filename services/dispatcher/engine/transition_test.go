package engine_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine"
)

// gateOf has a gate for each waiting status, and an answer to it.
var gateOf = map[wire.Status]struct{ config, answer string }{
	wire.StatusWaitingApproval: {
		`{"kind":"approval","data":{"artifactId":"x","artifactType":"y","title":"t","actions":["accept"]}}`,
		`{"action":"accept"}`,
	},
	wire.StatusWaitingInput: {
		`{"kind":"clarification","data":{"questions":[{"id":"q","question":"?"}]}}`,
		`{"answers":{"q":1}}`,
	},
	wire.StatusWaitingExternal: {`{"kind":"external-event","data":{"eventType":"e","correlation":{"o":1}}}`, `{"o":1}`},
}

// begun is a run in a status, with an open question if the status allows it.
func begun(t *testing.T, status wire.Status) *rig {
	t.Helper()
	gate, ok := gateOf[status]
	if !ok {
		gate = gateOf[wire.StatusWaitingApproval]
	}
	defs := define(t, nodeJSON("gate", "core.interrupt", gate.config)+","+nodeJSON("beside", "core.delay", `{"delayMs":60000}`))
	if status.Suspended() {
		defs = define(t, nodeJSON("gate", "core.interrupt", gate.config))
	}
	r := newRig(t, defs, nil)
	r.create(t)
	if status == wire.StatusPending {
		return r
	}
	r.next(t)
	var err error
	switch status {
	case wire.StatusPaused:
		_, err = r.exec.Pause(t.Context(), "acme", "run_1", wire.DrainNot, "", "key")
	case wire.StatusCancelled:
		_, _, err = r.exec.Cancel(t.Context(), "acme", "run_1", "", "key")
	case wire.StatusCancelling:
		r.put(t, subject.Wake, &wire.Note{Cancel: &wire.CancelNote{By: "key"}})
	case wire.StatusCompleted:
		r.put(t, subject.End, nil, wire.Draft{Type: wire.EventRunCompleted})
	case wire.StatusFailed:
		r.put(t, subject.End, nil, wire.Draft{
			Type:    wire.EventRunFailed,
			Payload: json.RawMessage(`{"error":{"code":"x","message":"y"}}`),
		})
	}
	require.NoError(t, err)
	return r
}

// put appends a frame as another dispatcher would.
func (r *rig) put(t *testing.T, kind subject.Kind, note *wire.Note, drafts ...wire.Draft) {
	t.Helper()
	st, frames := r.state(t)
	last := frames[len(frames)-1]
	var events []wire.Event
	for i, d := range drafts {
		events = append(events, d.Place("run_1", st.Next+i, time.Now()))
	}
	f := frame.New(theRun, kind, last.Head(), events)
	if note != nil {
		f = f.With(note.JSON())
	}
	_, err := r.log.Append(t.Context(), f, last.Pos)
	require.NoError(t, err)
}

// outside are the changes that a request can make.
var outside = map[string]func(*testing.T, *engine.Executor, wire.Status) error{
	"pause": func(t *testing.T, x *engine.Executor, _ wire.Status) error {
		_, err := x.Pause(t.Context(), "acme", "run_1", wire.DrainNot, "", "key")
		return err
	},
	"resume": func(t *testing.T, x *engine.Executor, _ wire.Status) error {
		_, err := x.Resume(t.Context(), "acme", "run_1", "")
		return err
	},
	"cancel": func(t *testing.T, x *engine.Executor, _ wire.Status) error {
		_, _, err := x.Cancel(t.Context(), "acme", "run_1", "", "key")
		return err
	},
	"resolve": func(t *testing.T, x *engine.Executor, from wire.Status) error {
		gate, ok := gateOf[from]
		if !ok {
			gate = gateOf[wire.StatusWaitingApproval]
		}
		_, err := x.Resolve(t.Context(), "acme", "run_1", engine.Answer{NodeID: "gate", Answer: interrupt.Answer{
			Value: json.RawMessage(gate.answer), By: interrupt.Responder{Principal: "key"},
		}})
		return err
	},
}

// OpenWOP host contract §2.5, §2.7, §3.1, §6.4: the result of each of the four requests in each of
// the ten statuses: the new status, or the code of the error, which appends nothing.
func TestTransition_OfEachRequestInEachStatus(t *testing.T) {
	t.Parallel()
	type row struct{ pause, resume, cancel, resolve string }
	refused, over := string(fault.Conflict), string(fault.RunTerminal)
	gone, none := string(fault.InterruptGone), string(fault.InterruptNotFound)
	for from, want := range map[wire.Status]row{
		wire.StatusPending:         {"paused", refused, "cancelled", none},
		wire.StatusRunning:         {"paused", refused, "cancelled", "running"},
		wire.StatusPaused:          {refused, "running", "cancelled", "paused"},
		wire.StatusWaitingApproval: {refused, refused, "cancelled", "completed"},
		wire.StatusWaitingInput:    {refused, refused, "cancelled", "completed"},
		wire.StatusWaitingExternal: {refused, refused, "cancelled", "completed"},
		wire.StatusCancelling:      {refused, refused, "cancelled", gone},
		wire.StatusCompleted:       {over, over, "completed", gone},
		wire.StatusFailed:          {over, over, "failed", gone},
		wire.StatusCancelled:       {over, over, "cancelled", gone},
	} {
		for verb, want := range map[string]string{
			"pause":   want.pause,
			"resume":  want.resume,
			"cancel":  want.cancel,
			"resolve": want.resolve,
		} {
			t.Run(string(from)+": "+verb+" -> "+want, func(t *testing.T) {
				t.Parallel()
				r := begun(t, from)
				st, before := r.state(t)
				require.Equal(t, from, st.Status)
				err := outside[verb](t, r.exec, from)
				after, frames := r.state(t)
				if code := fault.CodeOf(err); code != "" {
					require.Equal(t, want, string(code))
					require.Len(t, frames, len(before), "a refusal appends nothing")
					return
				}
				require.NoError(t, err)
				require.Equal(t, want, string(after.Status))
				isLegal(t, r.log)
			})
		}
	}
}

// isLegal checks every event of the run's log against the table of transitions.
func isLegal(t *testing.T, log *memory.Log) {
	t.Helper()
	frames, err := log.Run(t.Context(), theRun)
	require.NoError(t, err)
	rec, err := frames[0].Record()
	require.NoError(t, err)
	st := runstate.New(rec)
	for _, f := range frames[1:] {
		events, err := f.Events()
		require.NoError(t, err)
		for _, e := range events {
			from := st.Status
			st.Apply(e)
			require.True(t, runstate.MayMove(from, e.Type, st.Status), "%s leads from %s to %s", e.Type, from, st.Status)
		}
		st.Remember(wire.ParseNote(f.Note))
	}
}

func TestTransition_ADeliveryMovesNoRunThatHasEnded(t *testing.T) {
	t.Parallel()
	for _, from := range []wire.Status{wire.StatusPaused, wire.StatusCompleted, wire.StatusFailed, wire.StatusCancelled} {
		t.Run(string(from), func(t *testing.T) {
			t.Parallel()
			r := begun(t, from)
			_, before := r.state(t)
			require.NoError(t, r.exec.Wake(t.Context(), theRun, before[len(before)-1].Head()))
			st, frames := r.state(t)
			require.Equal(t, from, st.Status)
			events := 0
			for _, f := range frames[len(before):] {
				events += len(f.Types)
			}
			require.Zero(t, events)
		})
	}
}

// A node that failed while its model's question was open accepts no answer.
func TestResolve_OfANodeThatHasEnded(t *testing.T) {
	t.Parallel()
	r := begun(t, wire.StatusRunning)
	r.put(t, subject.Step, nil, wire.Draft{
		Type:    wire.EventNodeFailed,
		NodeID:  "gate",
		Payload: json.RawMessage(`{"nodeId":"gate","error":{"code":"x","message":"y"}}`),
	})
	err := outside["resolve"](t, r.exec, wire.StatusRunning)
	require.Equal(t, fault.InterruptGone, fault.CodeOf(err))
	require.NotContains(t, r.types(t), "interrupt.resolved")
	_, ended, err := r.exec.Interrupt(t.Context(), "acme", "run_1", "gate", "")
	require.NoError(t, err)
	require.True(t, ended)
}
