package retention_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/retention"
)

// writeRun appends a run with a parent, empty for none, up to its end or not.
func writeRun(t *testing.T, log runlog.Log, id, parent string, ended bool) subject.Run {
	t.Helper()
	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: id}
	rec := wire.RunRecord{RunID: id, WorkflowID: "w", Owner: wire.Owner{Tenant: "acme"}, CreatedAt: wire.FormatTime(time.UnixMilli(0))}
	if parent != "" {
		rec.Parent = &wire.Parent{RunID: parent}
	}
	body, err := json.Marshal(rec)
	require.NoError(t, err)
	f := frame.NewStart(run, body)
	pos, err := log.Append(t.Context(), f, 0)
	require.NoError(t, err)
	if ended {
		endRun(t, log, f, pos)
	}
	return run
}

func endRun(t *testing.T, log runlog.Log, f *frame.Frame, pos uint64) {
	t.Helper()
	e := wire.Draft{Type: wire.EventRunCompleted, Payload: []byte(`{}`)}.Place(f.Run.RunID, 0, time.UnixMilli(0))
	_, err := log.Append(t.Context(), frame.New(f.Run, subject.End, frame.Head{Pos: pos, Hash: f.Hash}, []wire.Event{e}), pos)
	require.NoError(t, err)
}

func newEraser(log *memory.Log, steps ...retention.EraseStep) *retention.Eraser {
	return retention.NewEraser(log, log, quiet, func(bool) {}, steps...)
}

func TestErase_RejectsWhatCannotBeErased(t *testing.T) {
	t.Parallel()
	log := memory.New()
	e := newEraser(log)
	active := writeRun(t, log, "active", "", false)
	child := writeRun(t, log, "child", "active", true)
	orphan := writeRun(t, log, "orphan", "ghost", true)
	for _, tt := range []struct {
		run  subject.Run
		want fault.Code
	}{
		{active, fault.Conflict},
		{child, fault.Conflict},
		{subject.Run{Tenant: "other", RunID: "orphan"}, fault.RunNotFound},
		{subject.Run{Tenant: "acme", RunID: "ghost"}, fault.RunNotFound},
	} {
		_, err := e.Erase(t.Context(), tt.run, frame.Requested)
		require.Equal(t, tt.want, fault.CodeOf(err), tt.run.RunID)
	}
	for _, want := range []bool{true, false} {
		erased, err := e.Erase(t.Context(), subject.Run{Tenant: "acme", RunID: orphan.RunID}, frame.Requested)
		require.NoError(t, err)
		require.Equal(t, want, erased)
	}
	log.FailReads(runlog.ErrUnavailable)
	_, err := e.Erase(t.Context(), orphan, frame.Requested)
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
}

func TestErase_AcceptsARunWithADamagedLog(t *testing.T) {
	t.Parallel()
	log := memory.New()
	run := writeRun(t, log, "r", "", false)
	log.Damage(1)
	erased, err := newEraser(log).Erase(t.Context(), run, frame.Requested)
	require.NoError(t, err)
	require.True(t, erased)
}

// A process dies before or after each step. Another one repeats all steps, with all frames, and then
// removes the frames.
func TestRun_ContinuesAnErasureAfterACrash(t *testing.T) {
	t.Parallel()
	for _, died := range []int{0, 1, 2} {
		log := memory.New()
		run, other := writeRun(t, log, "r", "", true), writeRun(t, log, "other", "", true)
		ctx, die := context.WithCancel(t.Context())
		defer die()
		dead := make([]retention.EraseStep, 3)
		for i := range dead {
			dead[i] = func(ctx context.Context, _ subject.Run, _ []*frame.Frame) error {
				if i == died {
					die()
				}
				return ctx.Err()
			}
		}
		first := newEraser(log, dead...)
		_, err := first.Erase(t.Context(), run, frame.Requested)
		require.NoError(t, err)
		require.ErrorIs(t, first.Run(ctx), context.Canceled)
		require.Len(t, log.Frames(), 5, "nothing is removed before the steps are done")

		var seen []int
		second, done := context.WithCancel(t.Context())
		step := func(n int) retention.EraseStep {
			return func(_ context.Context, r subject.Run, frames []*frame.Frame) error {
				require.Equal(t, run, r)
				require.Len(t, frames, 2)
				seen = append(seen, n)
				return nil
			}
		}
		e := retention.NewEraser(log, log, quiet, func(erased bool) { require.True(t, erased); done() }, step(0), step(1), step(2))
		require.ErrorIs(t, e.Run(second), context.Canceled)
		require.Equal(t, []int{0, 1, 2}, seen)
		rest := log.Frames()
		require.Len(t, rest, 3)
		require.Equal(t, other, rest[0].Run)
		require.Equal(t, subject.Erase, rest[2].Kind)
	}
}

func TestRun_TriesAgainAfterAFailure(t *testing.T) {
	t.Parallel()
	log := memory.New()
	run := writeRun(t, log, "r", "", true)
	ctx, done := context.WithCancel(t.Context())
	tries := 0
	var results []bool
	e := retention.NewEraser(log, log, quiet, func(erased bool) {
		if results = append(results, erased); erased {
			done()
		}
	}, func(context.Context, subject.Run, []*frame.Frame) error {
		switch tries++; tries {
		case 1:
			return errors.New("the store is away")
		case 2:
			panic("boom")
		}
		return nil
	})
	_, err := e.Erase(t.Context(), run, frame.Requested)
	require.NoError(t, err)
	require.ErrorIs(t, e.Run(ctx), context.Canceled)
	require.Equal(t, []bool{false, false, true}, results)
	require.Len(t, log.Frames(), 1)
}
