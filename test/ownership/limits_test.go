package ownership

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A provider's limit is that of all dispatchers together, and each of them makes calls.
func TestProviderLimits_AreThoseOfAllDispatchers(t *testing.T) {
	together(t)
	file := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"providers":{"lab":{"maxConcurrent":5}}}`), 0o600))
	const runs = 48
	s := size{16, runs, 250 * time.Millisecond}
	r := newRig(t, pick(t, s, s), same(2, "--provider-settings", file)...)
	r.start(t, askOnce, runs)
	r.completed(t)
	r.once(t, runs)
	by := map[string]int{}
	most := 0
	for _, c := range r.calls(nil) {
		by[c.by]++
		began := func(o call) bool { return !o.began.After(c.began) && o.ended.After(c.began) }
		most = max(most, len(r.calls(began)))
	}
	require.Equal(t, 5, most)
	require.Len(t, by, 2)
}

// A tool's limit is that of all dispatchers together. Calls beyond it wait, and each is made once.
func TestToolLimits_AreThoseOfAllDispatchers(t *testing.T) {
	together(t)
	file := filepath.Join(t.TempDir(), "limits.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"mcpServers":{"bank":{"tools":{"charge":{"concurrency":{"limit":3}}}}}}`), 0o600))
	const runs = 24
	s := size{16, runs, 100 * time.Millisecond}
	r := newRig(t, pick(t, s, s), same(2, "--tool-limits", file)...)
	r.start(t, charge, runs)
	events := r.completed(t)
	r.once(t, runs)
	waits := 0
	for _, list := range events {
		for _, e := range list {
			if e.Type == "node.retried" {
				waits++
				require.Contains(t, string(e.Payload), `"reason":"no_capacity"`)
				require.Contains(t, string(e.Payload), "the operator's limit of the concurrency of mcp:bank:charge is used up")
			}
		}
	}
	require.NotZero(t, waits)
	most := 0
	for _, c := range r.calls(nil) {
		began := func(o call) bool { return !o.began.After(c.began) && o.ended.After(c.began) }
		most = max(most, len(r.calls(began)))
	}
	require.Equal(t, 3, most)
}

// Runs of a killed dispatcher that wait for a tool's limit go on elsewhere, and only the outcome of the
// call in flight is unknown. The highest priority makes calls try often.
func TestToolLimits_WaitingCallsSurviveAKill(t *testing.T) {
	together(t)
	file := filepath.Join(t.TempDir(), "limits.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"mcpServers":{"bank":{"priority":10,"concurrency":{"limit":1}}}}`), 0o600))
	const runs = 16
	s := size{16, runs, 50 * time.Millisecond}
	r := newRig(t, pick(t, s, s), same(2, "--tool-limits", file, "--lease", "1s")...)
	release := r.hold() // one call is in flight, the others wait for the limit
	r.start(t, charge, runs)
	require.Eventually(t, func() bool { return r.active(name(0))+r.active(name(1)) == 1 }, time.Minute, 5*time.Millisecond)
	killed := 0
	if r.active(name(0)) == 0 {
		killed = 1
	}
	cut := r.calls(func(c call) bool { return c.ended.IsZero() })
	r.dispatchers[killed].Kill()
	release()
	for id, run := range r.ids {
		events, err := r.end(t.Context(), run)
		require.NoError(t, err)
		last := events[len(events)-1]
		if id != cut[0].id {
			require.Equal(t, "run.completed", last.Type, "%s: %s", id, last.Payload)
			continue
		}
		require.Equal(t, "run.failed", last.Type)
		require.Contains(t, string(last.Payload), `"outcome_unknown"`)
	}
	require.Len(t, r.calls(nil), runs, "each call is made once")
}
