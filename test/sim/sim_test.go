package sim_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/test/rotation"
	"waybill.dev/waybill/test/sim"
)

var (
	seeds = flag.Uint64("sim.seeds", 200, "number of seeds to simulate")
	from  = flag.Int64("sim.from", -1, "first seed; if negative, a multiple of -sim.seeds below 2000, another one after each commit")
	only  = flag.Int64("sim.seed", -1, "simulate only this seed and print its trace")
)

// firstSeed returns the first seed to simulate.
func firstSeed() uint64 {
	const known = 2000 // those of `make faults`
	if *from >= 0 {
		return uint64(*from)
	}
	return uint64(rotation.Turn()) * *seeds % known //nolint:gosec // G115: not negative
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func simulate(t *testing.T, s sim.Scenario, o sim.Options) (v sim.Verdict) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { v = sim.Run(s, o) })
	return v
}

// With any mix of failures, losses, delays, duplicates and crashes: every log folds to one legal
// state, no promise is broken, and every run has the result that its workflow defines.
func TestSim_EverySeedKeepsTheRules(t *testing.T) {
	t.Parallel()
	if *only >= 0 {
		v := simulate(t, sim.Generate(uint64(*only)), sim.Options{Traced: true})
		t.Logf("\n%s%d calls, %d faults, %s", v.Trace, v.Steps, v.Fates, v.Lasted)
		require.NoError(t, v.Err)
		return
	}
	const workers = 4
	var sum struct {
		sync.Mutex
		steps, faults, runs int
		lasted              time.Duration
	}
	var next, failed atomic.Uint64
	t.Cleanup(func() {
		t.Logf("%d seeds from %d: %d runs, %d calls, %d faults, %s simulated", *seeds, firstSeed(), sum.runs, sum.steps, sum.faults, sum.lasted)
	})
	for w := range workers {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			t.Parallel()
			for n := next.Add(1) - 1; n < *seeds && failed.Load() == 0; n = next.Add(1) - 1 {
				s := sim.Generate(firstSeed() + n)
				v := simulate(t, s, sim.Options{})
				sum.Lock()
				sum.steps, sum.faults, sum.runs, sum.lasted = sum.steps+v.Steps, sum.faults+v.Fates, sum.runs+v.Runs, sum.lasted+v.Lasted
				sum.Unlock()
				if v.Err != nil && failed.CompareAndSwap(0, 1) {
					report(t, s, v.Err)
				}
			}
		})
	}
}

// Events of several effects in one frame keep the rules, too.
func TestSim_GroupedResultsKeepTheRules(t *testing.T) {
	t.Parallel()
	for seed := range *seeds / 40 {
		s := sim.Generate(firstSeed() + seed)
		if v := simulate(t, s, sim.Options{Together: true}); v.Err != nil {
			t.Fatalf("seed %d (not reproducible): %v", seed, v.Err)
		}
	}
}

// report prints what is needed to find the cause of a failed seed.
func report(t *testing.T, s sim.Scenario, err error) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	small := sim.Shrink(s, func(s sim.Scenario) bool {
		return time.Now().Before(deadline) && simulate(t, s, sim.Options{}).Err != nil
	})
	v := simulate(t, small, sim.Options{Traced: true})
	doc, _ := json.Marshal(small)
	t.Errorf("seed %d: %v\nreproduce: go test ./test/sim -run EverySeed -v -sim.seed=%d\n\nsmallest failing scenario: %s\n%s%v", s.Seed, err, s.Seed, doc, v.Trace, v.Err)
}

// retells is how often a seed is simulated if two simulations differ. On a busy machine, goroutines of
// a process that wake at the same instant may rarely run in another order. All others must be equal.
const retells = 6

func TestSim_ASeedIsReproducible(t *testing.T) {
	t.Parallel()
	for seed := range *seeds / 10 {
		s := sim.Generate(firstSeed() + seed)
		one, two := simulate(t, s, sim.Options{Traced: true}), simulate(t, s, sim.Options{Traced: true})
		if one.Sum == two.Sum {
			continue
		}
		count := map[uint64]int{one.Sum: 1, two.Sum: 1}
		for range retells - len(count) {
			count[simulate(t, s, sim.Options{}).Sum]++
		}
		if count[one.Sum] == retells-1 || count[two.Sum] == retells-1 {
			t.Logf("seed %d: one of %d simulations differs", s.Seed, retells)
			continue
		}
		a, b := strings.Split(one.Trace, "\n"), strings.Split(two.Trace, "\n")
		for i := range a {
			require.Less(t, i, len(b), "seed %d", s.Seed)
			require.Equal(t, a[i], b[i], "seed %d, line %d, after %s", s.Seed, i, strings.Join(a[max(0, i-8):i], "\n"))
		}
		require.Equal(t, one.Sum, two.Sum, "seed %d", s.Seed)
	}
}

// forgetful is a log that appends without comparing the position.
type forgetful struct{ *memory.Log }

func (f forgetful) Append(ctx context.Context, fr *frame.Frame, _ uint64) (uint64, error) {
	last, err := f.Last(ctx, fr.Run)
	if err != nil {
		return f.Log.Append(ctx, fr, 0)
	}
	return f.Log.Append(ctx, fr, last.Pos)
}

// The rules detect a log that breaks its contract.
func TestSim_FindsBrokenLogs(t *testing.T) {
	t.Parallel()
	for name, log := range map[string]func() runlog.Log{
		"compares nothing": func() runlog.Log { return forgetful{memory.New()} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(300) {
				if v := simulate(t, sim.Generate(seed), sim.Options{Log: log}); v.Err != nil {
					t.Logf("after %d seeds: %v", seed+1, v.Err)
					return
				}
			}
			t.Fatal("no failure in 300 seeds")
		})
	}
}

// The rules detect double execution. Dispatchers that fetch more runs than they have slots, and
// execute every delivery, call models twice without any fault. Leases alone prevent that, and so
// does fetching one run per free slot.
func TestSim_FindsDispatchersWithoutLeases(t *testing.T) {
	t.Parallel()
	old := sim.Options{Prefetch: 8, AckWait: 3 * time.Second, Unleased: true}
	for seed := range uint64(20) {
		require.ErrorContains(t, simulate(t, sim.Crowd(seed), old).Err, "ownership", "seed %d", seed)
		for _, better := range []sim.Options{{Prefetch: 8, AckWait: 3 * time.Second}, {AckWait: 3 * time.Second, Unleased: true}, {}} {
			require.NoError(t, simulate(t, sim.Crowd(seed), better).Err, "seed %d, %+v", seed, better)
		}
	}
}

// Whatever happens to dispatchers, no more runs execute than a limit allows, and no run waits
// forever.
func TestSim_LimitsAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for seed := range *seeds / 10 {
		s := sim.Limited(firstSeed() + seed)
		if v := simulate(t, s, sim.Options{Desk: dir, Traced: true}); v.Err != nil {
			t.Fatalf("seed %d (not reproducible): %v\n%s", s.Seed, v.Err, v.Trace)
		}
	}
}
