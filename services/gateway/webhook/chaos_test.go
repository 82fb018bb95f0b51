package webhook_test

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/webhook"
)

// step is one action.
type step struct {
	what, run int
	wait      time.Duration
}

// seeds is the number of sequences of faults; WAYBILL_WEBHOOK_SEEDS overrides it.
func seeds(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv("WAYBILL_WEBHOOK_SEEDS"), "80"))
	require.NoError(t, err)
	return n
}

// With any failures and kills: each event arrives, the events of a run arrive in order, and no event
// arrives twice unless power was lost.
func TestDelivery_IsAtLeastOnceAndInOrder(t *testing.T) {
	t.Parallel()
	steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
		return step{
			what: rapid.IntRange(0, 7).Draw(rt, "what"), run: rapid.IntRange(0, 3).Draw(rt, "run"),
			wait: time.Duration(rapid.IntRange(1, 120).Draw(rt, "seconds")) * time.Second,
		}
	}), 5, 40)
	for seed := range seeds(t) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(r *rig) { live(r, steps.Example(seed)) })
		})
	}
}

// live executes the steps, then waits without faults and checks the deliveries.
func live(r *rig, steps []step) {
	r.policy.MaxAttempts, r.policy.MaxAge = 10_000, 10_000*time.Hour
	r.policy.Limits = webhook.Limits{Total: 3, PerTenant: 3, PerWebhook: 2}
	r.policy.Feed = webhook.FeedLimits{Frames: 2, PerTenant: 1}
	now := &power{}
	stop := r.startOn(now)
	e := r.hook(started, logged)
	w := &weather{r: r, want: map[string]int{}}
	lost := false
	for _, s := range steps {
		switch s.what {
		case 0, 1:
			w.event(s.run)
		case 2, 3:
			w.bad(s.run, s.what == 2)
		case 4:
			r.pass(s.wait)
		case 5, 6:
			lost = lost || s.what == 6
			now.off.Store(s.what == 6) // killed; otherwise stopped gracefully
			stop()
			now = &power{}
			stop = r.startOn(now)
		default:
			r.settle()
		}
	}
	for i := range 4 {
		w.bad(i, false)
	}
	r.pass(4 * time.Hour)
	r.drained(e)
	require.NotContains(r.t, dumper{r.lanes}.dump(), "lane.", "nothing is kept of what is done")
	w.check(lost)
}

// weather is the faults of a test and the expected deliveries.
type weather struct {
	r    *rig
	want map[string]int // events by run
	fail map[string]bool
}

func name(run int) string { return fmt.Sprintf("run_%d", run) }

func (w *weather) event(run int) {
	id := name(run)
	if _, begun := w.want[id]; !begun {
		w.r.run(id)
	}
	n := 1 + run%2
	w.r.say(id, []wire.EventType{started, logged}[:n]...)
	w.want[id] += n
}

func (w *weather) bad(run int, yes bool) {
	w.r.to.mu.Lock()
	defer w.r.to.mu.Unlock()
	if w.fail == nil {
		w.fail = map[string]bool{}
		w.r.to.answer = func(c call) webhook.Result {
			if w.fail[c.run] {
				return webhook.Result{Reason: "status 500"}
			}
			return webhook.Result{}
		}
	}
	w.fail[name(run)] = yes
}

func (w *weather) check(lost bool) {
	rt := w.r.t
	taken := map[string]map[int]int{}
	for _, c := range w.r.to.all() {
		if taken[c.run] == nil {
			taken[c.run] = map[int]int{}
		}
		for before := range c.seq {
			require.NotZero(rt, taken[c.run][before], "%s/%d was tried before %d was taken", c.run, c.seq, before)
		}
		if c.taken {
			taken[c.run][c.seq]++
		}
	}
	for run, n := range w.want {
		for seq := range n {
			require.NotZero(rt, taken[run][seq], "%s/%d never arrived", run, seq)
			if !lost {
				require.Equal(rt, 1, taken[run][seq], "%s/%d arrived twice", run, seq)
			}
		}
	}
}
