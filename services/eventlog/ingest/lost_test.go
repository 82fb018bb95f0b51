package ingest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/eventlog/logtest"
)

// cutOff is a rig that is at the log's end, of which the last n frames are lost then.
func cutOff(t *testing.T, n uint64) (reader *rig, shortened *memory.Log, before []*frame.Frame) {
	t.Helper()
	log := memory.New()
	r, _ := filled(t, log)
	all := log.Frames()
	log.CutOff(uint64(len(all)) - n)
	return r, log, all
}

// compare checks the log this many times, as a host does every second.
func (r *rig) compare(t *testing.T, times int) {
	t.Helper()
	for range times {
		require.NoError(t, r.ing.Compare(t.Context()))
	}
}

// restore appends the frames of another log.
func restore(t *testing.T, log *memory.Log, all []*frame.Frame) {
	t.Helper()
	last := map[subject.Run]uint64{}
	for _, f := range all {
		pos, err := log.Append(t.Context(), f, last[f.Run])
		require.NoError(t, err)
		require.Equal(t, f.Pos, pos)
		last[f.Run] = pos
	}
}

func TestCompare_CountsAnEndThatIsLost(t *testing.T) {
	t.Parallel()
	r, log, all := cutOff(t, 7)
	r.compare(t, 14)
	require.Zero(t, r.ing.Stats().Lost, "the answer may be from an old leader")
	r.compare(t, 1)
	eventually(t, func() bool { return r.ing.Stats().Rebuilds == 1 && r.ing.Ready() == nil }, "rebuilt")
	require.EqualValues(t, 7, r.ing.Stats().Lost)
	require.Equal(t, uint64(len(all))-7, r.ing.Stats().Applied)

	logtest.Whole(t, log, "new")
	r.caughtUp(t, log)
	r.compare(t, 20)
	require.EqualValues(t, 7, r.ing.Stats().Lost, "what is new does not bring it back")
	require.EqualValues(t, 1, r.ing.Stats().Rebuilds)
}

// A log in use continues immediately, and reuses the positions of lost records.
func TestCompare_CountsALostEndOfAGrowingLog(t *testing.T) {
	t.Parallel()
	r, log, all := cutOff(t, 7)
	r.compare(t, 1)
	for len(log.Frames()) <= len(all) {
		logtest.Whole(t, log, fmt.Sprint("new-", len(log.Frames())))
	}
	r.caughtUp(t, log) // what follows has been read, as if nothing were amiss
	r.compare(t, 1)
	eventually(t, func() bool { return r.ing.Stats().Rebuilds == 1 && r.ing.Ready() == nil }, "rebuilt")
	require.EqualValues(t, 7, r.ing.Stats().Lost)
}

// A leader that was cut off from the others returns an old position for some seconds.
func TestCompare_IgnoresAnOutdatedLeader(t *testing.T) {
	t.Parallel()
	r, log, all := cutOff(t, 7)
	r.compare(t, 14)
	restore(t, log, all)
	r.compare(t, 20)
	logtest.Whole(t, log, "new")
	r.caughtUp(t, log)
	require.Zero(t, r.ing.Stats().Lost)
	require.Zero(t, r.ing.Stats().Rebuilds)
}

func TestCompare_IgnoresAnUnreadableLog(t *testing.T) {
	t.Parallel()
	r, log, _ := cutOff(t, 7)
	log.FailReads(runlog.ErrUnavailable)
	for range 20 {
		require.ErrorIs(t, r.ing.Compare(t.Context()), runlog.ErrUnavailable)
	}
	require.Zero(t, r.ing.Stats().Lost)
}

// The log lost its end while it was not read. Later another server, which has the end, leads.
func TestRun_CountsAnEndThatWasLostBeforeUntilItIsThereAgain(t *testing.T) {
	t.Parallel()
	log := memory.New()
	r := newRig(t, log)
	mixed(t, log, "a", 20)
	stop := r.run(t)
	r.caughtUp(t, log)
	stop()
	r.close()
	all := log.Frames()
	log.CutOff(uint64(len(all)) - 3)

	again := openRig(t, log, r.path)
	again.run(t)
	eventually(t, func() bool { return again.ing.Stats().Rebuilds == 1 && again.ing.Ready() == nil }, "rebuilt")
	require.EqualValues(t, 3, again.ing.Stats().Lost)
	restore(t, log, all)
	again.caughtUp(t, log)
	require.Zero(t, again.ing.Stats().Lost)
}
