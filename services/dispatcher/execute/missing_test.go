package execute_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
)

// A server of a cluster may not have yet what another hands out: the run is not lost for it.
func TestExecute_ARunThatIsHandedOutAndNotFoundIsHandedBack(t *testing.T) {
	t.Parallel()
	defs := define(t, gateNode)
	r := newRig(t, defs, nil)
	r.create(t)
	r.log.FailNext(runlog.ErrConflict) // the server does not know the frame that the run begins with
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
