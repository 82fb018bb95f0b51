package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// A server of a cluster may not have a frame that another one delivered. The run is not lost.
func TestExecute_ARunThatIsHandedOutAndNotFoundIsHandedBack(t *testing.T) {
	t.Parallel()
	defs := define(t, gateNode)
	r := newRig(t, defs, nil)
	r.create(t)
	r.log.FailNext(runlog.ErrConflict) // the server does not have the start frame
	r.log.FailReads(runlog.ErrNotFound)
	r.next(t)
	waiting, held := r.log.Backlog()
	require.Equal(t, []int{1, 0}, []int{waiting, held})

	r.log.FailReads(nil)
	r.next(t)
	waiting, held = r.log.Backlog()
	require.Equal(t, []int{0, 0}, []int{waiting, held})
	_, frames := r.state(t)
	require.Greater(t, len(frames), 1)
}

// behind is a log whose reads lack the last frame of a run.
type behind struct{ runlog.Log }

func (b behind) Run(ctx context.Context, run subject.Run) ([]*frame.Frame, error) {
	frames, err := b.Log.Run(ctx, run)
	return frames[:max(len(frames)-1, 0)], err
}

// A dispatcher that reads a run without the delivered wake frame would let it wait again.
func TestExecute_ARunThatIsReadWithoutItsWakeIsHandedBack(t *testing.T) {
	t.Parallel()
	defs := define(t, gateNode)
	r := newRig(t, defs, nil)
	r.create(t)
	r.next(t)
	_, frames := r.state(t)
	last := frames[len(frames)-1]
	_, err := r.log.Append(t.Context(), frame.New(theRun, subject.Wake, last.Head(), nil), last.Pos)
	require.NoError(t, err)

	whole := r.exec
	r.exec = r.executorOn(behind{r.log}, defs, nil)
	r.next(t)
	waiting, held := r.log.Backlog()
	require.Equal(t, []int{1, 0}, []int{waiting, held})

	r.exec = whole
	r.next(t)
	waiting, held = r.log.Backlog()
	require.Equal(t, []int{0, 0}, []int{waiting, held})
}
