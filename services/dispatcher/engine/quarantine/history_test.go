package quarantine_test

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/services/dispatcher/engine/quarantine"
)

func isDead(string) (bool, error)  { return true, nil }
func isAlive(string) (bool, error) { return false, nil }

// Two dispatchers, and one that restarts, share one count.
func TestCountFailure_CountsForAllProcesses(t *testing.T) {
	t.Parallel()
	store := memory.New()
	for i := range 10 {
		l := quarantine.New(quarantine.DefaultConfig(), store, time.Now, slog.New(slog.DiscardHandler))
		n, err := l.CountFailure(t.Context(), theRun("run_1"))
		require.NoError(t, err)
		require.Equal(t, i+1, n)
	}
	l := quarantine.New(quarantine.DefaultConfig(), store, time.Now, slog.New(slog.DiscardHandler))
	_, err := l.Get(t.Context(), "acme", "run_1")
	require.Error(t, err, "a counted run is not quarantined")
	held, err := l.Holds(t.Context(), theRun("run_1"), 1)
	require.NoError(t, err)
	require.False(t, held)
	require.NoError(t, l.Forget(t.Context(), theRun("run_1")))
	require.Zero(t, left(t, store), "a run that continues has no record")
}

func TestCountFailure_BeginsAgainAfterARetryByAnOperatorOnly(t *testing.T) {
	t.Parallel()
	l, _ := listOf(newQueue())
	for range 10 {
		_, err := l.CountFailure(t.Context(), theRun("run_1"))
		require.NoError(t, err)
	}
	require.NoError(t, l.Add(t.Context(), theRun("run_1"), failing))
	n, err := l.CountFailure(t.Context(), theRun("run_1"))
	require.NoError(t, err)
	require.Equal(t, 10, n, "one failure after a check quarantines the run again")
	require.NoError(t, l.Add(t.Context(), theRun("run_1"), failing))
	_, err = l.Retry(t.Context(), "acme", "run_1")
	require.NoError(t, err)
	n, err = l.CountFailure(t.Context(), theRun("run_1"))
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestCountDeath_CountsAProcessOnceAndPausesLonger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, store := listOf(newQueue())
		var before time.Duration
		for i := range quarantine.MaxDeaths {
			process := fmt.Sprint("d-", i)
			d, err := l.CountDeath(t.Context(), theRun("run_1"), 1, process, 1)
			require.NoError(t, err)
			again, err := l.CountDeath(t.Context(), theRun("run_1"), 1, process, 1)
			require.NoError(t, err)
			require.Equal(t, d, again)
			require.Equal(t, i+1, d.Count)
			pause := max(time.Until(d.NotBefore), 0)
			if i < 3 {
				require.Zero(t, pause, "a deploy that goes wrong delays no run")
				continue
			}
			require.Greater(t, pause, before*2/3)
			held, err := l.Holds(t.Context(), theRun("run_1"), 9)
			require.NoError(t, err)
			require.True(t, held, "no timer wakes a run that waits in the queue")
			before = pause
			pass(pause)
		}
		require.Greater(t, before, 2*time.Minute)
		require.Less(t, before, 15*time.Minute)
		require.NoError(t, l.Forget(t.Context(), theRun("run_1")))
		require.Zero(t, left(t, store))
	})
}

// A run that goes on between the deaths of its dispatchers is never quarantined.
func TestCountDeath_ProgressEndsTheCount(t *testing.T) {
	t.Parallel()
	l, _ := listOf(newQueue())
	for i := range 50 {
		d, err := l.CountDeath(t.Context(), theRun("run_1"), 1, fmt.Sprint("d-", i), i/2)
		require.NoError(t, err)
		require.LessOrEqual(t, d.Count, 2)
		require.Zero(t, d.NotBefore)
	}
}

func TestEnter_CountsTheProcessThatDiedBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, store := listOf(newQueue())
		enter := func(process string, over func(string) (bool, error)) quarantine.Deaths {
			d, err := l.Enter(t.Context(), theRun("run_1"), 1, process, over)
			require.NoError(t, err)
			pass(max(time.Until(d.NotBefore), 0))
			return d
		}
		require.Zero(t, enter("d-0", isDead).Count)
		require.Zero(t, enter("d-1", isAlive).Count, "the other process may be at it")
		require.Equal(t, 1, enter("d-1", isDead).Count)
		d, err := l.CountDeath(t.Context(), theRun("run_1"), 1, "d-0", 0)
		require.NoError(t, err)
		require.Equal(t, 1, d.Count, "its claim is in the log, too")
		require.NoError(t, l.Leave(t.Context(), theRun("run_1"), "d-1"))
		require.Equal(t, 1, enter("d-2", isDead).Count, "d-1 ended the delivery")
		for i := 3; ; i++ {
			if d = enter(fmt.Sprint("d-", i), isDead); d.Count >= quarantine.MaxDeaths {
				break
			}
			if !d.NotBefore.IsZero() { // the pause is over now
				enter(fmt.Sprint("d-", i), isDead)
			}
			require.Less(t, i, 40)
		}
		require.NoError(t, l.Add(t.Context(), theRun("run_1"), quarantine.Cause{Reason: quarantine.ReasonFailing, Tries: d.Count}))
		rec, err := l.Get(t.Context(), "acme", "run_1")
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Until(rec.Next), time.Hour, "a check may end another process")
		require.NoError(t, l.Release(t.Context(), "acme", "run_1"))
		require.Equal(t, 1, left(t, store))
	})
}

// A check leaves a run one attempt. Also a death long after it counts.
func TestEnter_AfterACheckOneDeathQuarantinesAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, q := memory.New(), newQueue()
		l, end := begin(t, store, q)
		defer end()
		die := func(i int) quarantine.Deaths {
			d, err := l.CountDeath(t.Context(), theRun("run_1"), 1, fmt.Sprint("d-", i), 0)
			require.NoError(t, err)
			return d
		}
		for i := range quarantine.MaxDeaths {
			die(i)
		}
		for round := range 5 {
			require.NoError(t, l.Add(t.Context(), theRun("run_1"), quarantine.Cause{Reason: quarantine.ReasonFailing, Tries: quarantine.MaxDeaths}))
			for len(q.back()) <= round {
				pass(time.Minute)
			}
			d, err := l.Enter(t.Context(), theRun("run_1"), 1, "d-0", isAlive)
			require.NoError(t, err)
			require.Equal(t, quarantine.MaxDeaths-1, d.Count)
			require.Zero(t, d.NotBefore)
			pass(30 * time.Minute)
			require.NoError(t, l.Leave(t.Context(), theRun("run_1"), "d-0"))
			require.Equal(t, quarantine.MaxDeaths, die(100+round).Count)
		}
	})
}
