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

	"waybill.dev/waybill/test/rotation"
	"waybill.dev/waybill/test/sim"
)

var everyCall = flag.Bool("sim.kills", false, "strike every call and every pair of calls of every story, not only a part of the writes and notifications")

// strike simulates a story with faults at some calls. wrong is the difference from the first
// account, empty if only times differ.
func strike(t *testing.T, s sim.Story, first sim.Verdict, blows ...sim.Blow) (v sim.Verdict, wrong string) {
	t.Helper()
	scenario := sim.Stage(s)
	scenario.Blows = blows
	v = simulate(t, scenario, sim.Options{})
	switch {
	case v.Err != nil:
		return v, v.Err.Error()
	case v.Fates != len(blows):
		return v, fmt.Sprintf("%d of %d faults happened", v.Fates, len(blows))
	case len(first.Asked) != len(v.Asked):
		return v, fmt.Sprintf("models are called by %v, want %v", v.Asked, first.Asked)
	}
	for who, ids := range first.Asked {
		if !slices.Equal(ids, v.Asked[who]) {
			return v, fmt.Sprintf("%s calls its model with the ids %v, want %v", who, v.Asked[who], ids)
		}
	}
	return v, sim.Differ(first.Accounts, v.Accounts)
}

// writes lists the boundaries that store something.
var writes = []string{"append", "accept", "outcome", "redact", "scrub"}

// notifies lists the boundaries after which another process has learned something.
var notifies = []string{"next", "ack", "model", "piece", "request", "answer", "sign"}

// due reports whether every test run includes this fault: processes die before and after calls that
// write or notify, and writes fail before and after taking effect.
func due(c sim.Call, f sim.Fate) bool {
	if *everyCall || slices.Contains(writes, c.At) {
		return true
	}
	return slices.Contains(notifies, c.At) && (f == sim.CrashBefore || f == sim.CrashAfter)
}

// dueTwice reports whether every test run includes this pair of faults, given the number of
// appends.
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

// kill repeats a story with different faults each time.
type kill struct {
	story sim.Story
	first sim.Verdict
	// every is 3 if a third of the calls are struck in a turn
	every int
	// report only the first failure
	failed sync.Once
	// calls, once and twice count calls and faults over all stories.
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

// all lets each call go wrong in each way: its process dies before or after the call took effect,
// or the call returns an error with or without effect.
func (k *kill) all(t *testing.T) {
	t.Helper()
	k.first = simulate(t, sim.Stage(k.story), sim.Options{})
	require.NoError(t, k.first.Err)
	k.calls.Add(int64(len(k.first.Calls)))
	appends := appendsOf(k.first.Calls)
	for i, c := range k.first.Calls {
		if !*everyCall && !rotation.Includes(i, k.every) {
			continue
		}
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

// again kills a second process after the first.
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

// changesNothing kills processes in every story and requires equal accounts.
func changesNothing(t *testing.T, all []sim.Story, every int) {
	t.Helper()
	var calls, once, twice atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d stories, %d calls: %d single faults, %d pairs", len(all), calls.Load(), once.Load(), twice.Load())
	})
	for _, s := range all {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			k := &kill{story: s, every: every, calls: &calls, once: &once, twice: &twice}
			k.all(t)
		})
	}
}

// Killing any process at any step of any fixture changes only times.
func TestKill_ChangesNothingOfTheFixtures(t *testing.T) {
	t.Parallel()
	changesNothing(t, fixtureStories(t), 3)
}

// The same for the runs of the golden corpus, which must match their recordings. They are many, and
// similar to the fixtures.
func TestKill_ChangesNothingOfRecordedRuns(t *testing.T) {
	t.Parallel()
	changesNothing(t, recordedStories(t), 6)
}

// The same for stories in neither of them: forks, races, secrets, retries.
func TestKill_ChangesNothingOfOtherStories(t *testing.T) {
	t.Parallel()
	changesNothing(t, otherStories(), 3)
}

// The stories of the corpus reproduce the recorded events exactly.
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
		var got []string
		for _, e := range v.Accounts[0].Events {
			head, _, _ := strings.Cut(e, " ")
			got = append(got, head)
		}
		require.Equal(t, want[s.Name], got, s.Name)
	}
}
