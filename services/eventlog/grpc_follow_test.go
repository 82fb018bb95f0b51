package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/memory"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog"
	"waybill.dev/waybill/services/eventlog/logtest"
)

func TestFollow_OfAnEndedRunGivesTheBacklogAndEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := logtest.Whole(t, r.log, "run-1") // events 0 to 3
	for after, from := range map[int32]int{-1: 0, -9: 0, 1: 2, 2: 3} {
		s := r.follow(t, within(t), "run-1", after, false)
		first, err := s.Recv()
		require.NoError(t, err)
		require.Equal(t, int32(3), first.GetHead())
		require.Nil(t, first.GetInitialSnapshot())
		require.Equal(t, w.Docs(from), docs(t, w, append(first.GetEvents(), rest(t, s)...)))
	}
	for _, after := range []int32{3, 4, 1000} {
		s := r.follow(t, within(t), "run-1", after, false)
		first, err := s.Recv()
		require.NoError(t, err, "also an empty stream begins with the head")
		require.Equal(t, int32(3), first.GetHead())
		require.Empty(t, append(first.GetEvents(), rest(t, s)...))
	}
}

func TestFollow_GoesFromTheBacklogToTheLiveWithoutSeam(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const before, after, followers = 30, 60, 12
	w := r.begin(t, "run-1")
	for i := range before {
		w.Step(logtest.Log(fmt.Sprint("early ", i)))
	}
	var wg sync.WaitGroup
	got := make([][]int32, followers)
	for i := range followers {
		wg.Go(func() {
			s := r.follow(t, within(t), "run-1", int32(i)-1, false)
			for {
				resp, err := s.Recv()
				if err == io.EOF {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				for _, e := range resp.GetEvents() {
					got[i] = append(got[i], e.GetSequence())
				}
			}
		})
	}
	for i := range after {
		w.Step(logtest.Log(fmt.Sprint("late ", i)))
		if i%7 == 0 {
			w.Wake()
		}
	}
	w.End(logtest.RunCompleted)
	wg.Wait()
	for i := range followers {
		var want []int32
		for seq := int32(i); seq <= before+after; seq++ {
			want = append(want, seq)
		}
		require.Equal(t, want, got[i], "follower %d", i)
	}
	r.followed(t, 0)
}

func TestFollow_BeyondTheHeadIsACursor(t *testing.T) {
	t.Parallel()
	for _, snapshots := range []bool{false, true} {
		r := newRig(t)
		w := r.begin(t, "run-1")
		w.Step(logtest.RunStarted, logtest.Log("1")) // head is 1
		s := r.follow(t, within(t), "run-1", 3, snapshots)
		first, err := s.Recv()
		require.NoError(t, err)
		require.Equal(t, int32(1), first.GetHead())
		require.Empty(t, first.GetEvents())
		w.Step(logtest.Log("2"), logtest.Log("3"), logtest.Log("4"))
		w.End(logtest.RunCompleted)
		events := rest(t, s)
		require.Equal(t, w.Docs(4), docs(t, w, events))
		if snapshots {
			require.Equal(t, w.SnapshotAt(4), string(events[0].GetSnapshot()))
		}
	}
	r := newRig(t)
	w := r.begin(t, "run-1")
	s := r.follow(t, within(t), "run-1", 100, false)
	_, err := s.Recv()
	require.NoError(t, err)
	w.End(logtest.RunStarted, logtest.RunCompleted)
	require.Empty(t, rest(t, s), "the run's end is the stream's, also when the cursor is behind it")
}

func TestFollow_AttachesTheSnapshotAsOfEachEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.begin(t, "run-1")
	w.Step(append([]wire.Draft{logtest.RunStarted}, logtest.Node("n1")...)...) // 0 to 2
	w.Step(logtest.Node("n2")...)                                              // 3, 4
	for _, after := range []int32{-1, 1, 4} {
		s := r.follow(t, within(t), "run-1", after, true)
		first, err := s.Recv()
		require.NoError(t, err)
		require.Equal(t, w.SnapshotAt(int(after)), string(first.GetInitialSnapshot()))
		next := int(after) + 1
		for _, e := range first.GetEvents() {
			require.Equal(t, next, int(e.GetSequence()))
			require.Equal(t, w.SnapshotAt(next), string(e.GetSnapshot()))
			next++
		}
		w.Step(logtest.Log(fmt.Sprint("after ", after)))
		resp, err := s.Recv()
		require.NoError(t, err)
		last := resp.GetEvents()[len(resp.GetEvents())-1]
		require.Equal(t, w.Snapshot(), string(last.GetSnapshot()))
		if after == 4 {
			break
		}
	}
	w.End(logtest.RunCompleted)
	events := rest(t, r.follow(t, within(t), "run-1", -1, true))
	require.Len(t, events, len(w.Events))
	for i, e := range events {
		require.Equal(t, w.SnapshotAt(i), string(e.GetSnapshot()))
	}
}

// A follower that does not read is overtaken; when it reads on, nothing is
// missing.
func TestFollow_ThatLagsReadsOnFromTheStore(t *testing.T) {
	t.Parallel()
	cfg := eventlog.DefaultConfig()
	cfg.FollowQueue = 2
	r := openRig(t, memory.New(), filepath.Join(t.TempDir(), "eventlog.db"), cfg)
	w := r.begin(t, "run-1")
	s := r.follow(t, within(t), "run-1", -1, false)
	_, err := s.Recv()
	require.NoError(t, err)
	big := fmt.Sprintf("%0100000d", 7) // fills the buffers of the connection
	for range 60 {
		w.Step(logtest.Log(big))
	}
	require.Eventually(t, func() bool { return r.svc.Lags() > 0 }, patience, time.Millisecond)
	w.End(logtest.RunCompleted)
	require.Equal(t, w.Docs(0), docs(t, w, rest(t, s)))
}

// A backlog of large and small events arrives whole, in messages of limited size.
func TestFollow_SendsLargeEventsInSmallMessages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.begin(t, "run-1")
	w.Step(logtest.RunStarted)
	for i := range 40 {
		w.Step(logtest.Log(strings.Repeat("x", (i%3)*100_000)), logtest.Log("y"))
	}
	w.End(logtest.RunCompleted)
	for _, after := range []int32{-1, 0, 7, 40} {
		s, got := r.follow(t, within(t), "run-1", after, false), []*eventlogv1.Event{}
		for {
			resp, err := s.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			size := 0
			for _, e := range resp.GetEvents() {
				size += len(e.GetDocument())
			}
			require.Less(t, size, 512<<10)
			got = append(got, resp.GetEvents()...)
		}
		require.Equal(t, w.Docs(int(after)+1), docs(t, w, got))
	}
}

func TestFollow_SurvivesARebuildOfTheStore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.begin(t, "run-1")
	w.Step(logtest.RunStarted, logtest.Log("1"))
	s := r.follow(t, within(t), "run-1", -1, false)
	first, err := s.Recv()
	require.NoError(t, err)
	got := docs(t, w, first.GetEvents())

	for range 5 {
		r.svc.Rebuild(fault.New(fault.InternalError, "test"))
		w.Step(logtest.Log("while it is rebuilt"))
		resp, err := s.Recv()
		require.NoError(t, err)
		got = append(got, docs(t, w, resp.GetEvents())...)
	}
	w.End(logtest.RunCompleted)
	got = append(got, docs(t, w, rest(t, s))...)
	require.Equal(t, w.Docs(0), got)
}

func TestFollow_EndsWithItsCallerAndWithTheService(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.begin(t, "run-1")
	ctx, cancel := context.WithCancel(t.Context())
	s := r.follow(t, ctx, "run-1", -1, false)
	_, err := s.Recv()
	require.NoError(t, err)
	cancel()
	_, err = s.Recv()
	require.ErrorIs(t, err, context.Canceled)
	r.followed(t, 0)

	s = r.follow(t, within(t), "run-1", -1, false)
	_, err = s.Recv()
	require.NoError(t, err)
	r.stop()
	_, err = s.Recv()
	require.ErrorIs(t, err, fault.New(fault.ServiceUnavailable, ""))
}

func TestFollow_ReportsABrokenRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.begin(t, "run-1")
	w.Step(logtest.RunStarted)
	s := r.follow(t, within(t), "run-1", -1, false)
	first, err := s.Recv()
	require.NoError(t, err)
	require.Len(t, first.GetEvents(), 1)

	forged := *w
	forged.Head.Hash = "somebody else's" // the frame will not follow its predecessor
	w.Append(forged.Frame(subject.Step, logtest.Log("x")))
	_, err = s.Recv()
	require.ErrorIs(t, err, fault.New(fault.LogDamaged, ""))
}
