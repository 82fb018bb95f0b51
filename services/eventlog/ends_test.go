package eventlog_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/eventlog"
)

// countingLog counts the questions to the log.
type countingLog struct {
	*memory.Log
	frames, ends atomic.Int64
	// hold delays the answers to questions for the end until it is closed.
	hold chan struct{}
}

func (l *countingLog) Last(ctx context.Context, run subject.Run) (*frame.Frame, error) {
	l.frames.Add(1)
	return l.Log.Last(ctx, run)
}

func (l *countingLog) Newest(ctx context.Context) (uint64, error) {
	l.ends.Add(1)
	if l.hold != nil {
		<-l.hold
	}
	return l.Log.Newest(ctx)
}

// A read of a run asks the log for its end, never for a frame, and readers that wait at the same time
// share the question.
func TestReads_AskForAPositionTogether(t *testing.T) {
	t.Parallel()
	log := &countingLog{Log: memory.New()}
	r := openRigOn(t, log, log.Log, filepath.Join(t.TempDir(), "eventlog.db"), eventlog.DefaultConfig())
	r.begin(t, "run-1")
	_, err := r.get(t, "run-1")
	require.NoError(t, err)
	before := log.ends.Load()
	log.hold = make(chan struct{})
	var readers errgroup.Group
	const n = 100
	for range n {
		readers.Go(func() error {
			_, err := r.get(t, "run-1")
			return err
		})
	}
	require.Eventually(t, func() bool { return log.ends.Load() > before }, patience, patience/1e5)
	close(log.hold)
	require.NoError(t, readers.Wait())
	require.Less(t, log.ends.Load()-before, int64(n), "readers share questions")
	require.Zero(t, log.frames.Load(), "no frame is read")
}
