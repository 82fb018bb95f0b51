package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/queue"
)

// flaky is a store whose writes fail at random; some of the failed writes are done.
type flaky struct {
	kv.Store
	mu   sync.Mutex
	rand *rand.Rand
	well bool
}

var errAway = fmt.Errorf("%w: answer lost", kv.ErrUnavailable)

// fate returns whether a write is done, and whether it is acknowledged.
func (f *flaky) fate() (done, answered bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.rand.IntN(10); !f.well && n < 3 {
		return n < 2, false
	}
	return true, true
}

func (f *flaky) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.well = true
}

func (f *flaky) Update(ctx context.Context, key string, value []byte, revision uint64) (rev uint64, err error) {
	done, answered := f.fate()
	if done {
		rev, err = f.Store.Update(ctx, key, value, revision)
	}
	if !answered {
		return 0, errAway
	}
	return rev, err
}

func (f *flaky) Delete(ctx context.Context, key string, revision uint64) (err error) {
	done, answered := f.fate()
	if done {
		err = f.Store.Delete(ctx, key, revision)
	}
	if !answered {
		return errAway
	}
	return err
}

// While writes fail and answers are lost, no run is lost, no limit is exceeded, and in the end nothing
// is left over.
func TestScheduler_LosesNothingWhileItsStoreFails(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r, g := inMemory(), newGauge()
			store := &flaky{Store: r.tickets, rand: rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // G404: the same each time
			r.tickets = store
			cfg := queue.Config{Size: 3, Tick: 5 * time.Millisecond, RetryDelay: 5 * time.Millisecond, MaxLag: time.Millisecond}
			for range 2 {
				r.dispatcher(t, cfg, g.brief(2*time.Millisecond))
			}
			limited := &wire.Schedule{Concurrency: &wire.ConcurrencyLimit{Limit: 1}}
			all := append(ids("one", 25), ids("many", 60)...)
			for _, id := range all {
				if id[:3] == "one" {
					r.start(t, "one", id, limited)
				} else {
					r.start(t, "many", id, nil)
				}
			}
			eventually(t, "all are executed", func() bool { return g.distinct() == len(all) })
			store.heal()
			for _, prefix := range []string{"ready.", "limited.", "permit."} {
				eventually(t, prefix+" is empty", func() bool {
					left, err := kv.List(t.Context(), r.tickets, prefix)
					return err == nil && len(left) == 0
				})
			}
			g.mu.Lock()
			defer g.mu.Unlock()
			require.Equal(t, 1, g.most["one"])
		})
	}
}

// faulty is a store whose first write of each prefix panics, after it is done.
type faulty struct {
	kv.Store
	mu       sync.Mutex
	prefixes []string
}

func (f *faulty) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	rev, err := f.Store.Update(ctx, key, value, revision)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, p := range f.prefixes {
		if strings.HasPrefix(key, p) && revision > 0 == (p == "ready.") {
			f.prefixes = slices.Delete(f.prefixes, i, i+1)
			panic("boom: " + key)
		}
	}
	return rev, err
}

// A panic while a waiting run gets its slot, or a limited one its permit, costs no slot: with one
// slot, all runs are executed.
func TestScheduler_APanicKeepsNoSlot(t *testing.T) {
	t.Parallel()
	r, g := inMemory(), newGauge()
	store := &faulty{Store: r.tickets, prefixes: []string{"ready.", "permit."}}
	r.tickets = store
	cfg := queue.Config{Size: 1, Tick: 5 * time.Millisecond, RetryDelay: 5 * time.Millisecond, ParkAfter: time.Millisecond}
	r.dispatcher(t, cfg, g.brief(2*time.Millisecond))
	all := ids("run", 20)
	for _, id := range all {
		r.start(t, "many", id, nil)
	}
	r.start(t, "one", "limited", &wire.Schedule{Concurrency: &wire.ConcurrencyLimit{Limit: 5}})
	log, ok := r.log.(*memory.Log)
	require.True(t, ok)
	eventually(t, "all are executed", func() bool {
		log.Expire() // what the panics left unacknowledged
		return g.distinct() == len(all)+1
	})
	store.mu.Lock()
	defer store.mu.Unlock()
	require.Empty(t, store.prefixes, "both panics happened")
}
