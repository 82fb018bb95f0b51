package ownership

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// dueAt waits until the read model has the timer of a run, and returns its due time.
func (r *rig) dueAt(t *testing.T, run string) time.Time {
	t.Helper()
	var state struct {
		Waybill struct {
			Waits struct {
				For   string
				DueAt time.Time
			}
		}
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		a, err := r.gateway.Client(key).Do(t.Context(), http.MethodGet, "/v1/runs/"+run, "")
		require.NoError(c, err)
		require.NoError(c, a.JSON(&state))
		require.Equal(c, "timer", state.Waybill.Waits.For)
	}, time.Minute, 20*time.Millisecond)
	return state.Waybill.Waits.DueAt
}

// endedAt returns the time of the event that ends a run, which must have completed.
func endedAt(t *testing.T, events []harness.Event) time.Time {
	t.Helper()
	last := events[len(events)-1]
	require.Equal(t, "run.completed", last.Type)
	var timed struct{ Timestamp time.Time }
	require.NoError(t, json.Unmarshal(last.Raw, &timed))
	return timed.Timestamp
}

// The only dispatcher is killed while runs wait. The next one wakes them when they are due, although
// the lease of the first outlasts the test.
func TestTimers_FireOnTimeAfterAKill(t *testing.T) {
	together(t)
	const runs = 12
	s := pick(t, size{}, size{})
	r := newRig(t, s, same(1, "--lease", "1m")...)
	due := map[string]time.Time{}
	for i := range runs { // due one after the other, most of them after the restart
		delay := strconv.FormatFloat(6+float64(i)/4, 'f', 2, 64)
		run, err := r.createWith(t.Context(), sleep, id(i), `{"id":"`+id(i)+`","delaySeconds":`+delay+`}`)
		require.NoError(t, err)
		due[run] = time.Time{}
	}
	for run := range due {
		due[run] = r.dueAt(t, run)
	}
	r.dispatchers[0].Kill()
	r.dispatchers[0].Launch()
	up := time.Now()
	var late []time.Duration
	for run, at := range due {
		events, err := r.end(t.Context(), run)
		require.NoError(t, err)
		ended := endedAt(t, events)
		require.False(t, ended.Before(at), "%s is due at %s and ended at %s", run, at, ended)
		if at.Before(up) {
			at = up
		}
		late = append(late, max(ended.Sub(at), 0))
	}
	slices.Sort(late)
	t.Logf("late by %s", late)
	require.LessOrEqual(t, late[runs/2], 500*time.Millisecond+noise(t)/10, "half of them")
	require.LessOrEqual(t, late[runs-1], 500*time.Millisecond+noise(t), "all of them")
}
