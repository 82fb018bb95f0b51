package ownership

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// exits waits until a process ends by itself, and returns when it did.
func exits(t *testing.T, h *harness.Host, within time.Duration) time.Time {
	t.Helper()
	select {
	case <-h.Exited():
	case <-time.After(within):
		require.Fail(t, "the process has not ended", "within %s", within)
	}
	return time.Now()
}

func terminate(t *testing.T, h *harness.Host) time.Time {
	t.Helper()
	require.NoError(t, syscall.Kill(h.PID, syscall.SIGTERM))
	return time.Now()
}

// draining waits until a dispatcher that was signaled starts no further call.
func draining(t *testing.T, h *harness.Host) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(h.Log(), "draining: waiting for the calls") }, time.Minute, 5*time.Millisecond)
}

// begins waits for the second call of each id, and returns the time of each from the end of the
// first call, sorted.
func (r *rig) begins(t *testing.T, first []call, second func(id string) string) (gaps []time.Duration) {
	t.Helper()
	for _, c := range first {
		var next, ended time.Time
		require.Eventually(t, func() bool {
			for _, of := range r.calls(func(o call) bool { return o.id == c.id && o.began.Equal(c.began) }) {
				ended = of.ended
			}
			for _, of := range r.calls(func(o call) bool { return o.id == second(c.id) && o.began.After(c.began) }) {
				next = of.began
			}
			return !ended.IsZero() && !next.IsZero()
		}, 2*time.Minute, 5*time.Millisecond, "%s goes on", c.id)
		gaps = append(gaps, next.Sub(ended))
	}
	slices.Sort(gaps)
	return gaps
}

// prompt requires that all gaps are within the limit of a hand-over.
func prompt(t *testing.T, gaps []time.Duration) {
	t.Helper()
	require.NotEmpty(t, gaps)
	slowest := gaps[len(gaps)-1]
	t.Logf("%d runs go on elsewhere: median %s, slowest %s; limit %s + %s", len(gaps), gaps[len(gaps)/2], slowest, handover, noise(t))
	require.LessOrEqual(t, slowest, handover+noise(t))
}

// A dispatcher that is signaled to end finishes its calls, and starts no others.
func TestDrain_RepeatsNoCall(t *testing.T) {
	s := pick(t, size{8, 40, 500 * time.Millisecond}, size{32, 150, 20 * time.Second})
	together(t)
	r := newRig(t, s, same(2)...)
	release := r.hold()
	r.start(t, askOnce, s.runs)
	r.busy(t, 0, s.slots)
	r.busy(t, 1, s.slots)
	d := r.dispatchers[0]
	signaled := terminate(t, d)
	draining(t, d)
	drained := time.Now()
	release()
	ended := exits(t, d, time.Minute)
	last := time.Time{}
	for _, c := range r.calls(func(c call) bool { return c.by == name(0) }) {
		require.True(t, c.answered, "the process waits for its calls: %+v", c)
		require.False(t, c.began.After(drained), "it starts no further call: drains at %s: %+v", drained, c)
		if c.ended.After(last) {
			last = c.ended
		}
	}
	t.Logf("the process ended %s after the signal, %s after its last call", ended.Sub(signaled).Round(time.Millisecond), ended.Sub(last).Round(time.Millisecond))
	require.Less(t, ended.Sub(last), 5*time.Second+noise(t), "it ends once it is drained")
	require.True(t, d.Ended().Success(), "%s", d.Ended())
	events := r.completed(t)
	r.once(t, s.runs)
	r.checkOwners(t, events)
}

// Calls that are not done at --drain-timeout are repeated by another dispatcher, without
// waiting for a lease.
func TestDrain_LeftoverGoesOnElsewhere(t *testing.T) {
	s := pick(t, size{16, 8, 500 * time.Millisecond}, size{64, 32, 20 * time.Second})
	together(t)
	r := newRig(t, s, same(2, "--drain-timeout", "1s", "--lease", "15s")...)
	d, other := r.dispatchers[0], r.dispatchers[1]
	release := r.hold()
	other.Kill()
	r.start(t, askOnce, s.runs)
	r.busy(t, 0, s.runs)
	other.Launch()
	cut := r.calls(func(c call) bool { return c.by == name(0) && c.ended.IsZero() })
	signaled := terminate(t, d)
	ended := exits(t, d, time.Minute)
	release()
	t.Logf("the process ended %s after the signal", ended.Sub(signaled).Round(time.Millisecond))
	require.GreaterOrEqual(t, ended.Sub(signaled), time.Second, "it drains first")
	prompt(t, r.begins(t, cut, func(id string) string { return id }))
	events := r.completed(t)
	r.interrupted(t, 0, ended)
	r.checkOwners(t, events)
}

// A run with further nodes goes on elsewhere as soon as the call in progress is recorded.
func TestDrain_NextCallIsMadeElsewhere(t *testing.T) {
	s := pick(t, size{16, 8, 500 * time.Millisecond}, size{64, 32, 20 * time.Second})
	together(t)
	r := newRig(t, s, same(2, "--lease", "15s")...)
	d, other := r.dispatchers[0], r.dispatchers[1]
	release := r.hold()
	other.Kill()
	r.start(t, askTwice, s.runs)
	r.busy(t, 0, s.runs)
	other.Launch()
	first := r.calls(func(c call) bool { return c.by == name(0) && c.ended.IsZero() })
	require.NotEmpty(t, first)
	terminate(t, d)
	draining(t, d)
	release()
	prompt(t, r.begins(t, first, func(id string) string { return id[:len(id)-1] + "2" }))
	exits(t, d, time.Minute)
	events := r.completed(t)
	r.once(t, 2*s.runs)
	r.checkOwners(t, events)
}

// A second signal ends a dispatcher that drains.
func TestDrain_SecondSignalEndsAtOnce(t *testing.T) {
	s := pick(t, size{8, 4, 500 * time.Millisecond}, size{8, 4, 20 * time.Second})
	together(t)
	r := newRig(t, s, same(2)...)
	release := r.hold() // it cannot drain
	r.start(t, askOnce, s.runs)
	require.Eventually(t, func() bool { return r.active(name(0))+r.active(name(1)) == s.runs }, time.Minute, 5*time.Millisecond)
	d := 0
	if r.active(name(d)) == 0 {
		d = 1
	}
	signaled := terminate(t, r.dispatchers[d])
	// The first signal may not be handled yet: signals of one kind merge.
	require.Eventually(t, func() bool {
		select {
		case <-r.dispatchers[d].Exited():
			return true
		default:
			_ = syscall.Kill(r.dispatchers[d].PID, syscall.SIGTERM) // it may just have ended
			return false
		}
	}, 20*time.Second, 100*time.Millisecond, "the process ends before its drain timeout of 30 s")
	release()
	t.Logf("the process ended %s after the first signal", time.Since(signaled).Round(time.Millisecond))
	events := r.completed(t)
	r.interrupted(t, d, signaled)
	r.checkOwners(t, events)
}

// Calls that wait for a provider's limit when their dispatcher is signaled are made elsewhere, although
// others are still in flight here. The dispatcher begins none of them.
func TestDrain_CallsThatWaitForALimitAreMadeElsewhere(t *testing.T) {
	s := pick(t, size{16, 12, 100 * time.Millisecond}, size{64, 48, 5 * time.Second})
	together(t)
	file := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"providers":{"lab":{"maxConcurrent":4}}}`), 0o600))
	r := newRig(t, s, same(2, "--lease", "15s", "--provider-settings", file)...)
	d, other := r.dispatchers[0], r.dispatchers[1]
	release := sync.OnceFunc(r.hold())
	t.Cleanup(release) // the servers of a failed test wait for their calls
	other.Kill()
	r.start(t, askOnce, s.runs)
	r.busy(t, 0, 2)
	other.Launch()
	signaled := terminate(t, d)
	draining(t, d)
	drained := time.Now()
	r.busy(t, 1, 1)
	began := r.calls(func(c call) bool { return c.by == name(1) })[0].began
	t.Logf("the first waiting call is made elsewhere %s after the signal", began.Sub(signaled).Round(time.Millisecond))
	require.Less(t, began.Sub(signaled), handover+noise(t))
	require.NotZero(t, r.active(name(0)), "calls are still in flight")
	release()
	exits(t, d, time.Minute)
	for _, c := range r.calls(func(c call) bool { return c.by == name(0) }) {
		require.True(t, c.answered, "the process waits for its calls: %+v", c)
		require.False(t, c.began.After(drained), "it begins no further call: drains at %s: %+v", drained, c)
	}
	events := r.completed(t)
	r.once(t, s.runs)
	r.checkOwners(t, events)
}
