package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// outage is a log that cannot be reached for a while.
type outage struct {
	*memory.Log
	// writes and reads report what is unreachable.
	writes, reads atomic.Bool
	// lost reports that the log stores a frame, and its answer is lost.
	lost atomic.Bool
}

func (a *outage) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	if a.lost.CompareAndSwap(true, false) {
		a.writes.Store(true)
		_, err := a.Log.Append(ctx, f, after)
		if err != nil {
			return 0, err
		}
		return 0, runlog.ErrUnavailable
	}
	if a.writes.Load() {
		return 0, runlog.ErrUnavailable
	}
	last, err := a.Last(ctx, f.Run)
	if err == nil && last.Hash == f.Hash { // as the real log: the frame was stored, its answer was lost
		return last.Pos, nil
	}
	return a.Log.Append(ctx, f, after)
}

func (a *outage) Run(ctx context.Context, r subject.Run) ([]*frame.Frame, error) {
	if a.reads.Load() {
		return nil, runlog.ErrUnavailable
	}
	return a.Log.Run(ctx, r)
}

// Parallel branches: a call in flight, and a branch that must append in the meantime. An outage that
// is shorter than HoldResults costs no call.
func TestOutage_ABranchThatMustAppendCostsNoCallOfAnother(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		begin, end func(r *rig, log *outage)
	}{
		"of the log": {
			func(_ *rig, log *outage) { log.writes.Store(true) },
			func(_ *rig, log *outage) { log.writes.Store(false) },
		},
		"of the redactor": {
			func(r *rig, _ *outage) { r.red.away.Store(true) },
			func(r *rig, _ *outage) { r.red.away.Store(false) },
		},
		"of the log, which stored the frame": {
			func(_ *rig, log *outage) { log.lost.Store(true) },
			func(_ *rig, log *outage) { log.writes.Store(false) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, calls, log := outageRig(t, strings.Join([]string{
					nodeJSON("a", toolA, "{}"), nodeJSON("b", "core.delay", `{"delayMs":1000}`), nodeJSON("c", toolA, "{}"),
				}, ","), `{"id":"e","sourceNodeId":"b","targetNodeId":"c"}`)
				calls.during = func(ctx context.Context, id string) {
					if id == "a" {
						sleepIn(ctx, 20*time.Second)
					}
				}
				go func() {
					sleepIn(t.Context(), 500*time.Millisecond)
					c.begin(r, log)
					sleepIn(t.Context(), 5*time.Second)
					c.end(r, log)
				}()
				r.next(t)
				st, _ := r.state(t)
				require.Equal(t, wire.StatusCompleted, st.Status)
				require.Equal(t, map[string]int{"a": 1, "c": 1}, calls.of)
				require.Zero(t, st.Nodes["a"].Lost)
			})
		})
	}
}

// outageRig is limitedRig without limits, on a log that can be away.
func outageRig(t *testing.T, nodes string, edges ...string) (*rig, *callCount, *outage) {
	t.Helper()
	r, calls := limitedRig(t, nil, nodes, edges...)
	r.hold = time.Minute
	log := &outage{Log: r.log}
	r.exec = r.executorOn(log, r.defs, r.models)
	return r, calls, log
}

func sleepIn(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// A session that ends for any other reason than the loss of its run first records the results of its
// calls: here the effect of another branch was interrupted.
func TestOutage_AnInterruptedCallCostsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, calls, _ := outageRig(t, nodeJSON("a", toolA, "{}")+","+nodeJSON("b", toolA, "{}")+","+nodeJSON("c", toolA, "{}"))
		calls.during = func(ctx context.Context, id string) {
			sleepIn(ctx, map[string]time.Duration{"a": time.Second, "b": 2 * time.Second, "c": 20 * time.Second}[id])
		}
		calls.interrupt = map[string]bool{"a": true, "b": true}
		r.next(t)
		st, _ := r.state(t)
		require.Equal(t, runstate.NodeCompleted, st.Nodes["c"].Status, "its result is in the log")
		calls.interrupt = nil
		r.log.Expire()
		r.next(t)
		st, _ = r.state(t)
		require.Equal(t, wire.StatusCompleted, st.Status)
		require.Equal(t, map[string]int{"a": 2, "b": 2, "c": 1}, calls.of)
		require.Zero(t, st.Nodes["a"].Lost, "nothing was sent")
	})
}

// A call whose start could not be synced was not sent: its outcome is not unknown.
func TestOutage_ACallThatWaitsForTheSyncIsHeld(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]time.Duration{"a short one": time.Minute, "a longer one than results are kept": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, calls := limitedRig(t, nil, nodeJSON("a", toolA, "{}"))
				r.hold = hold
				disk := &disked{Log: r.log}
				r.exec = r.executorOn(disk, r.defs, r.models)
				disk.breakFor(1)
				for st, _ := r.state(t); !st.Status.Terminal(); st, _ = r.state(t) {
					r.next(t)
					r.log.Expire()
				}
				st, _ := r.state(t)
				require.Equal(t, wire.StatusCompleted, st.Status, "%+v", st.Error)
				require.Equal(t, map[string]int{"a": 1}, calls.of)
			})
		})
	}
}
