package ownership

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// interrupted requires that no call was repeated but those that a dispatcher had in flight at
// a time, and each of these once, by another dispatcher.
func (r *rig) interrupted(t *testing.T, dispatcher int, at time.Time) {
	t.Helper()
	t.Log(r.summary())
	require.Len(t, r.byID(), len(r.ids), "each id is called")
	for id, calls := range r.repeated() {
		require.Len(t, calls, 2, "%s is repeated once: %+v", id, calls)
		require.Equal(t, name(dispatcher), calls[0].by, "%s: %+v", id, calls)
		require.NotEqual(t, name(dispatcher), calls[1].by, "%s: %+v", id, calls)
		require.True(t, calls[0].inFlight(at), "%s was not in flight at %s: %+v", id, at, calls)
	}
}

// A dispatcher that is killed loses the calls it had in flight. Other dispatchers repeat these
// calls, and no others.
func TestKill_RepeatsOnlyCallsInFlight(t *testing.T) {
	needsRest(t)
	s := pick(t, size{8, 64, 4 * time.Second}, size{32, 300, 6 * time.Second})
	r := newRig(t, s, same(2)...)
	r.start(t, askOnce, s.runs)
	r.busy(t, 0, s.slots)
	r.dispatchers[0].Kill()
	killed := time.Now()
	events := r.completed(t)
	r.interrupted(t, 0, killed)
	var delays []time.Duration
	for _, calls := range r.repeated() {
		delays = append(delays, calls[1].began.Sub(killed).Round(time.Millisecond))
	}
	slices.Sort(delays)
	t.Logf("the calls are repeated after %s", delays)
	r.checkOwners(t, events)
}

// stop suspends a process, and returns when it is suspended.
func stop(t *testing.T, h *harness.Host) {
	t.Helper()
	require.NoError(t, syscall.Kill(h.PID, syscall.SIGSTOP))
	require.Eventually(t, func() bool {
		b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(h.PID), "stat"))
		require.NoError(t, err)
		_, rest, _ := strings.Cut(string(b), ") ")
		return strings.HasPrefix(rest, "T")
	}, 10*time.Second, time.Millisecond)
}

// A dispatcher that hangs for longer than its lease loses its runs. Its late results are
// rejected, and it goes on with other runs.
func TestHang_RunsAreTakenOverOnce(t *testing.T) {
	needsRest(t)
	s := pick(t, size{8, 64, 4 * time.Second}, size{32, 300, 6 * time.Second})
	r := newRig(t, s, same(2, "--lease", "3s")...)
	r.start(t, askOnce, s.runs)
	r.busy(t, 0, s.slots)
	d := r.dispatchers[0]
	stop(t, d)
	stopped := time.Now()
	inFlight := r.calls(func(c call) bool { return c.by == name(0) && c.ended.IsZero() })
	require.NotEmpty(t, inFlight)
	require.Eventually(t, func() bool {
		calls := r.byID()
		for _, c := range inFlight {
			if len(calls[c.id]) < 2 {
				return false
			}
		}
		return true
	}, 2*time.Minute, 20*time.Millisecond, "the other dispatcher takes over")
	t.Logf("%d runs are taken over %s after the stop", len(inFlight), time.Since(stopped).Round(time.Millisecond))
	continued := time.Now()
	require.NoError(t, syscall.Kill(d.PID, syscall.SIGCONT))
	r.start(t, askOnce, 2*s.slots)
	events := r.completed(t)
	r.interrupted(t, 0, stopped)
	r.checkOwners(t, events)
	require.NotEmpty(t, r.calls(func(c call) bool { return c.by == name(0) && c.began.After(continued) }), "it executes other runs again")
	for id, of := range events {
		ends := 0
		for _, e := range of {
			if e.Type == "node.completed" {
				ends++
			}
		}
		require.Equal(t, 1, ends, "%s: one result is recorded", id)
	}
}

// A dispatcher with free slots takes over the runs of a killed one soon after the lease.
func TestKill_RunsGoOnAfterTheLease(t *testing.T) {
	needsRest(t)
	const (
		lease = 3 * time.Second
		limit = lease + 2*time.Second
	)
	s := pick(t, size{16, 8, 8 * time.Second}, size{64, 32, 10 * time.Second})
	r := newRig(t, s, same(2, "--lease", lease.String())...)
	d, other := r.dispatchers[0], r.dispatchers[1]
	other.Kill()
	r.start(t, askOnce, s.runs)
	r.busy(t, 0, s.runs)
	other.Launch()
	d.Kill()
	killed := time.Now()
	require.Eventually(t, func() bool { return len(r.repeated()) == s.runs }, time.Minute, 10*time.Millisecond, "the other dispatcher takes over")
	took := time.Since(killed)
	t.Logf("%d runs go on %s after the kill; limit %s + %s", s.runs, took.Round(time.Millisecond), limit, noise(t))
	events := r.completed(t)
	r.interrupted(t, 0, killed)
	r.checkOwners(t, events)
	require.LessOrEqual(t, took, limit+noise(t))
}
