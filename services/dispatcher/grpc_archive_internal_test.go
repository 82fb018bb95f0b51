package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/archive"
	"waybill.dev/waybill/internal/archive/store"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/retention"
)

// wholeRun is a bundle of a run, or one that lacks events.
type wholeRun struct{ truncated bool }

func (b *wholeRun) Whole(_ context.Context, run subject.Run) ([]byte, error) {
	return fmt.Appendf(nil, `{"run":{"runId":%q,"workflowId":%q},"events":[{"runId":%q,"sequence":0}],"truncated":%t}`,
		run.RunID, run.WorkflowID, run.RunID, b.truncated), nil
}

// awayTarget is an archive that can be away.
type awayTarget struct {
	archive.Target

	err error
}

func (a *awayTarget) Put(ctx context.Context, name string, file []byte) error {
	if a.err != nil {
		return a.err
	}
	return a.Target.Put(ctx, name, file)
}

// Only an archive that is unavailable stops a sweep; a run that cannot be archived is kept on its own.
func TestPrepare_SaysWhetherTheArchiveOrTheRunFails(t *testing.T) {
	t.Parallel()
	log, bundle, target := memory.New(), &wholeRun{}, &awayTarget{Target: store.Directory(t.TempDir())}
	run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "run_1"}
	body, err := json.Marshal(wire.RunRecord{
		RunID: run.RunID, WorkflowID: "w", Owner: wire.Owner{Tenant: "acme"}, CreatedAt: wire.FormatTime(time.UnixMilli(0)),
	})
	require.NoError(t, err)
	start := frame.NewStart(run, body)
	pos, err := log.Append(t.Context(), start, 0)
	require.NoError(t, err)
	e := expirer{
		holds:    retention.NewHolds(kvmemory.New(), log, time.Now),
		archiver: retention.NewArchiver(log, bundle, target, slog.New(slog.DiscardHandler)),
	}
	err = e.Prepare(t.Context(), run)
	require.Equal(t, fault.Conflict, fault.CodeOf(err), "it has not ended")
	require.NotErrorIs(t, err, retention.ErrArchive)
	ended := wire.Draft{Type: wire.EventRunCompleted, Payload: []byte(`{}`)}.Place(run.RunID, 0, time.UnixMilli(0))
	_, err = log.Append(t.Context(), frame.New(run, subject.End, frame.Head{Pos: pos, Hash: start.Hash}, []wire.Event{ended}), pos)
	require.NoError(t, err)

	target.err = errors.New("the bucket is away")
	require.ErrorIs(t, e.Prepare(t.Context(), run), retention.ErrAway)
	target.err = nil

	bundle.truncated = true
	err = e.Prepare(t.Context(), run)
	require.Equal(t, fault.PayloadTooLarge, fault.CodeOf(err))
	require.ErrorIs(t, err, retention.ErrArchive)
	require.NotErrorIs(t, err, retention.ErrAway)
	bundle.truncated = false

	log.FailReads(fmt.Errorf("read: %w", frame.ErrDamaged))
	err = e.Prepare(t.Context(), run)
	require.Equal(t, fault.LogDamaged, fault.CodeOf(err))
	require.ErrorIs(t, err, retention.ErrArchive)
	require.NotErrorIs(t, err, retention.ErrAway)
	log.FailReads(nil)
	require.NoError(t, e.Prepare(t.Context(), run))
}
