package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
)

// begun appends the start frame of a run that an engine version created.
func (r *rig) begun(t *testing.T, of subject.Run, version int) *frame.Frame {
	t.Helper()
	rec, err := json.Marshal(&wire.RunRecord{
		RunID:         of.RunID,
		WorkflowID:    of.WorkflowID,
		Owner:         wire.Owner{Tenant: of.Tenant},
		EngineVersion: version,
		CreatedAt:     wire.FormatTime(time.Now()),
	})
	require.NoError(t, err)
	f := frame.NewStart(of, rec)
	f.Pos, err = r.log.Append(t.Context(), f, 0)
	require.NoError(t, err)
	return f
}

// goesOn appends an event of a later engine that took the run over.
func (r *rig) goesOn(t *testing.T, kind subject.Kind, typ wire.EventType) *frame.Frame {
	t.Helper()
	last, err := r.log.Last(t.Context(), theRun)
	require.NoError(t, err)
	e := wire.Draft{Type: typ}.Place("run_1", last.Head().Next, time.Now())
	e.EngineVersion = "2"
	f := frame.New(theRun, kind, last.Head(), []wire.Event{e}).By("beside-newer-1")
	f.Pos, err = r.log.Append(t.Context(), f, last.Pos)
	require.NoError(t, err)
	return f
}

const gateNode = `{"id":"gate","typeId":"core.approvalGate","name":"n","position":{"x":0,"y":0},"config":` + approvalJSON + `,"inputs":{}}`

// mismatched checks the error for a run of the next engine version.
func mismatched(t *testing.T, err error) {
	t.Helper()
	e, ok := fault.As(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, fault.EngineVersionMismatch, e.Code)
	require.Equal(t, map[string]any{
		"runId":            "run_1",
		"persistedVersion": wire.EngineVersion + 1,
		"currentVersion":   wire.EngineVersion,
	}, e.Details)
	require.Equal(t, 503, e.Row().HTTP)
	require.Positive(t, e.RetryAfter)
}

// OpenWOP host contract §3.2: during an upgrade an old dispatcher leaves such a run to a newer one,
// and executes the others.
func TestEngine_ARunOfALaterOneIsLeftInTheQueue(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*testing.T, *rig){
		"it created the run": func(t *testing.T, r *rig) { r.begun(t, theRun, wire.EngineVersion+1) },
		"it has gone on with it": func(t *testing.T, r *rig) {
			r.create(t)
			r.next(t)
			r.goesOn(t, subject.Wake, wire.EventLogAppended)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			defs := define(t, gateNode)
			r, said := newRig(t, defs, nil), &bytes.Buffer{}
			r.said = said
			r.exec = r.executor(defs, nil)
			begin(t, r)
			_, before := r.state(t)
			other := subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: "run_other"}
			r.begun(t, other, wire.EngineVersion)
			for range 4 { // the later engine's run three times, the other once
				r.next(t)
			}
			_, after := r.state(t)
			require.Len(t, after, len(before), "no frame was appended")
			waiting, held := r.log.Backlog()
			require.Equal(t, []int{1, 0}, []int{waiting, held}, "it waits for a newer dispatcher")
			require.Equal(t, 1, strings.Count(said.String(), "run left to a newer dispatcher"), "%s", said)
			st, _, _ := r.eventsOf(t, other)
			require.Equal(t, wire.StatusWaitingApproval, st.Status)
		})
	}
}

func TestEngine_ARunOfALaterOneTakesNoChange(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, gateNode), nil)
	r.create(t)
	r.next(t)
	r.goesOn(t, subject.Step, wire.EventLogAppended)
	ctx, x := t.Context(), r.exec
	_, err := x.Pause(ctx, "acme", "run_1", wire.DrainNot, "", "key")
	mismatched(t, err)
	_, err = x.Resume(ctx, "acme", "run_1", "")
	mismatched(t, err)
	_, _, err = x.Cancel(ctx, "acme", "run_1", "", "key")
	mismatched(t, err)
	_, err = x.Resolve(ctx, "acme", "run_1", accept("ada"))
	mismatched(t, err)
	q, ended, err := x.Interrupt(ctx, "acme", "run_1", "gate", "")
	require.NoError(t, err, "a read is allowed")
	require.False(t, ended)
	require.Equal(t, "gate", q.NodeID)
	wakeLost(t, x, theRun, "no dispatcher here may execute it")
	_, frames := r.state(t)
	require.Len(t, frames, 3)
}

// A run that has ended does not continue.
func TestEngine_ARunThatALaterOneHasEndedIsOver(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, gateNode), nil)
	r.create(t)
	r.next(t)
	r.goesOn(t, subject.End, wire.EventRunCancelled)
	st, already, err := r.exec.Cancel(t.Context(), "acme", "run_1", "", "key")
	require.NoError(t, err)
	require.True(t, already)
	require.Equal(t, wire.StatusCancelled, st.Status)
	_, err = r.exec.Pause(t.Context(), "acme", "run_1", wire.DrainNot, "", "key")
	require.Equal(t, fault.RunTerminal, fault.CodeOf(err))
}

func TestEngine_ASessionEndsIfALaterVersionTookTheRun(t *testing.T) {
	t.Parallel()
	var r *rig
	r = newRig(t, define(t, nodeJSON("a", "core.ai.callPrompt", "{}")), models(func(ctx context.Context, _ model.Task, j model.Journal) model.Result {
		r.goesOn(t, subject.Step, wire.EventLogAppended)
		return model.Result{Interrupted: j.Record(ctx, chunk("a"))}
	}))
	r.create(t)
	r.next(t)
	st, frames := r.state(t)
	require.Equal(t, wire.StatusRunning, st.Status)
	require.Equal(t, "beside-newer-1", frames[len(frames)-1].Writer)
	waiting, held := r.log.Backlog()
	require.Equal(t, []int{1, 0}, []int{waiting, held})
}

// A log that only a later engine can read is not damaged.
func TestEngine_ALogThatOnlyALaterOneCanReadIsNotQuarantined(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, gateNode), nil)
	start := r.begun(t, theRun, wire.EngineVersion+1)
	f := frame.New(theRun, subject.Wake, start.Head(), nil)
	f.Body = []byte("unknown to this engine")
	_, err := r.log.Append(t.Context(), f, start.Pos)
	require.NoError(t, err)
	_, _, err = machine.Load([]*frame.Frame{start, f})
	require.ErrorIs(t, err, frame.ErrDamaged)
	r.next(t)
	r.next(t)
	waiting, held := r.log.Backlog()
	require.Equal(t, []int{2, 0}, []int{waiting, held})
}

// One message about a run does not suppress another.
func TestEngine_LogsEachReasonToSkipARunOnce(t *testing.T) {
	t.Parallel()
	defs := define(t, gateNode)
	r, said := newRig(t, defs, nil), &bytes.Buffer{}
	r.said = said
	r.exec = r.executor(defs, nil)
	r.create(t)
	r.next(t)
	r.goesOn(t, subject.Step, wire.EventLogAppended)
	for _, pos := range []uint64{1, 3, 1, 3} { // the first frame and the last, in turns
		r.log.Damage(pos)
		wakeLost(t, r.exec, theRun)
		r.log.Damage(pos)
		wakeLost(t, r.exec, theRun)
	}
	require.Equal(t, 1, strings.Count(said.String(), "overdue run not woken: its log is damaged"), "%s", said)
	require.Equal(t, 1, strings.Count(said.String(), "run left to a newer dispatcher"), "%s", said)
	require.Len(t, r.log.Frames(), 3)
}

func TestEngine_OfAStateIsTheHighestVersion(t *testing.T) {
	t.Parallel()
	st := runstate.New(&wire.RunRecord{RunID: "r", EngineVersion: 1})
	for i, v := range []string{"1", "", "x", "3", "2"} {
		st.Apply(wire.Event{Sequence: i, EngineVersion: v})
	}
	require.Equal(t, 3, st.EngineVersion)
}
