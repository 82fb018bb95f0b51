package lease_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/services/dispatcher/engine/lease"
)

// ranks follows the ranks of a process.
type ranks struct {
	mu   sync.Mutex
	seen []string
}

func follow(t *testing.T, d *dispatcher) *ranks {
	t.Helper()
	r := &ranks{}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = d.FollowRank(ctx, func(rank, of int) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.seen = append(r.seen, fmt.Sprint(rank, "/", of))
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

func (r *ranks) list() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.seen...)
}

// Live processes have the ranks 0, 1, … while others join, drain, leave or die.
func TestTable_RanksTheLiveProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bucket := memory.New()
		b := start(t, bucket, "b", lease.Config{Duration: duration})
		ofB := follow(t, b)
		require.Equal(t, []string{"0/1"}, ofB.list())
		c := start(t, bucket, "c", lease.Config{Duration: duration})
		ofC := follow(t, c)
		require.Equal(t, []string{"0/1", "0/2"}, ofB.list())
		require.Equal(t, []string{"1/2"}, ofC.list(), "nothing before the others are known")
		a := start(t, bucket, "a", lease.Config{Duration: duration})
		require.Equal(t, []string{"0/1", "0/2", "1/3"}, ofB.list())
		require.Equal(t, []string{"1/2", "2/3"}, ofC.list())
		pass(5 * duration)
		require.Len(t, ofB.list(), 3, "renewals change nothing")

		a.Drain()
		pass(duration)
		require.Len(t, ofB.list(), 3, "its calls go on")
		require.NoError(t, a.Release(t.Context()))
		require.Equal(t, "0/2", ofB.list()[3])
		require.Equal(t, "1/2", ofC.list()[2])
		a.kill()

		b.kill()
		pass(duration / 2)
		require.Len(t, ofC.list(), 3, "it may be alive")
		pass(2 * duration)
		require.Equal(t, []string{"1/2", "2/3", "1/2", "0/1"}, ofC.list())
	})
}

// A process that cannot observe the others does not take their shares.
func TestTable_KeepsItsRankWithoutTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bucket := memory.New()
		a := start(t, bucket, "a", lease.Config{Duration: duration})
		start(t, bucket, "b", lease.Config{Duration: duration})
		ofA := follow(t, a)
		a.down.Store(true)
		pass(10 * duration)
		require.Equal(t, []string{"0/2"}, ofA.list())
	})
}

func TestTable_ASoleProcessHasNoOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bucket := memory.New()
		start(t, bucket, "a", lease.Config{Duration: duration}).kill()
		b := start(t, bucket, "b", lease.Config{Duration: duration, Sole: true})
		ofB := follow(t, b)
		pass(time.Minute)
		require.Equal(t, []string{"0/1"}, ofB.list())
	})
}
