package sim_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/sim"
)

var everyCall = flag.Bool("sim.kills", false, "strike every call of every story, and every two of them, and not those alone that change or tell something")

// strike simulates a story with some of its calls going wrong, and says what became of it
// otherwise than in the first account; empty: nothing but time.
func strike(t *testing.T, s sim.Story, first sim.Verdict, blows ...sim.Blow) (v sim.Verdict, wrong string) {
	t.Helper()
	scenario := sim.Stage(s)
	scenario.Blows = blows
	v = simulate(t, scenario, sim.Options{})
	switch {
	case v.Err != nil:
		return v, v.Err.Error()
	case v.Fates != len(blows):
		return v, fmt.Sprintf("%d of %d blows were struck", v.Fates, len(blows))
	case len(first.Asked) != len(v.Asked):
		return v, fmt.Sprintf("models are asked by %v, and were by %v", v.Asked, first.Asked)
	}
	for who, ids := range first.Asked {
		if !slices.Equal(ids, v.Asked[who]) {
			return v, fmt.Sprintf("%s asks its model with the ids %v, and asked with %v", who, v.Asked[who], ids)
		}
	}
	return v, sim.Differ(first.Accounts, v.Accounts)
}

// writes are the calls that store something, or have something stored.
var writes = []string{"append", "accept", "outcome", "redact", "scrub"}

// tells are those after which somebody else knows of something.
var tells = []string{"next", "ack", "model", "piece", "request", "answer", "sign"}

// due reports whether a blow is struck by every run of the tests: whoever makes a call that
// writes or tells dies before and after, and what is written fails before and after.
func due(c sim.Call, f sim.Fate) bool {
	if *everyCall || slices.Contains(writes, c.At) {
		return true
	}
	return slices.Contains(tells, c.At) && (f == sim.CrashBefore || f == sim.CrashAfter)
}

// dueTwice reports whether a pair of blows is, the first one of a story of so many appends.
func dueTwice(one, two sim.Call, appends int) bool {
	return *everyCall || one.At == "append" && two.At == "append" && appends <= 3
}

func appendsOf(calls []sim.Call) (n int) {
	for _, c := range calls {
		if c.At == "append" {
			n++
		}
	}
	return n
}

// kill is a story that is told again and again, each time with other blows.
type kill struct {
	story sim.Story
	first sim.Verdict
	// failed: one way in which it comes to something else is enough.
	failed sync.Once
	// calls, once and twice count what was done, over all stories.
	calls, once, twice *atomic.Int64
}

func (k *kill) strike(t *testing.T, blows ...sim.Blow) (v sim.Verdict, ok bool) {
	t.Helper()
	v, wrong := strike(t, k.story, k.first, blows...)
	if wrong == "" {
		return v, true
	}
	k.failed.Do(func() {
		scenario := sim.Stage(k.story)
		scenario.Blows = blows
		t.Errorf("%s, blows %v: %s\n%s", k.story.Name, blows, wrong, simulate(t, scenario, sim.Options{Traced: true}).Trace)
	})
	return v, false
}

// all strikes each call in each way that it can go wrong: its process dies before or after it
// took effect, or the answer is that it failed, although perhaps it did not.
func (k *kill) all(t *testing.T) {
	t.Helper()
	k.first = simulate(t, sim.Stage(k.story), sim.Options{})
	require.NoError(t, k.first.Err)
	k.calls.Add(int64(len(k.first.Calls)))
	appends := appendsOf(k.first.Calls)
	for _, c := range k.first.Calls {
		for _, f := range c.Fates {
			if !due(c, f) {
				continue
			}
			one := sim.Blow{Step: c.Step, Fate: f}
			k.once.Add(1)
			if v, ok := k.strike(t, one); ok && (f == sim.CrashBefore || f == sim.CrashAfter) {
				k.again(t, c, one, v.Calls, appends)
			}
		}
	}
}

// again lets another process die after the first.
func (k *kill) again(t *testing.T, c sim.Call, one sim.Blow, calls []sim.Call, appends int) {
	t.Helper()
	for _, d := range calls {
		if d.Step <= c.Step || !dueTwice(c, d, appends) {
			continue
		}
		for _, f := range []sim.Fate{sim.CrashBefore, sim.CrashAfter} {
			k.twice.Add(1)
			k.strike(t, one, sim.Blow{Step: d.Step, Fate: f})
		}
	}
}

// changesNothing kills processes in every story.
func changesNothing(t *testing.T, all []sim.Story) {
	t.Helper()
	var calls, once, twice atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d stories, %d calls: struck %d times once, %d times twice", len(all), calls.Load(), once.Load(), twice.Load())
	})
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			k := &kill{story: s, calls: &calls, once: &once, twice: &twice}
			k.all(t)
		})
	}
}

// Killing any process at any step of any fixture changes nothing but time.
func TestKill_ChangesNothingOfTheFixtures(t *testing.T) {
	t.Parallel()
	changesNothing(t, fixtureStories(t))
}

// The same of the runs of the golden corpus, which come to what was recorded of them.
func TestKill_ChangesNothingOfRecordedRuns(t *testing.T) {
	t.Parallel()
	changesNothing(t, recordedStories(t))
}

// The same of what neither of them has: forks, races, secrets, retries.
func TestKill_ChangesNothingOfOtherStories(t *testing.T) {
	t.Parallel()
	changesNothing(t, otherStories())
}

// What the stories of the corpus come to is what was recorded, event for event.
func TestKill_RecordedRunsAreReproduced(t *testing.T) {
	t.Parallel()
	want := map[string][]string{}
	for _, r := range corpus(t) {
		for _, e := range r.events {
			want[r.name] = append(want[r.name], fmt.Sprintf("%s@%s", e.Type, e.NodeID))
		}
	}
	for _, s := range recordedStories(t) {
		v := simulate(t, sim.Stage(s), sim.Options{})
		require.NoError(t, v.Err, s.Name)
		require.Equal(t, sim.Begun, v.Accounts[0].Run)
		var told []string
		for _, e := range v.Accounts[0].Events {
			head, _, _ := strings.Cut(e, " ")
			told = append(told, head)
		}
		require.Equal(t, want[s.Name], told, s.Name)
	}
}
