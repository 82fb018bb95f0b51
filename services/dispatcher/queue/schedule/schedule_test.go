package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/queue/schedule"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func weights(w map[string]int) func(string) int {
	return func(tenant string) int { return max(1, w[tenant]) }
}

// picks lists the runs in the order in which they get slots; no slot is given back.
func picks(b *schedule.WaitList, s *schedule.Slots, at time.Time) (ids []string) {
	for {
		t, ok := b.Next(at, s)
		if !ok {
			return ids
		}
		s.Acquire(t.Tenant)
		ids = append(ids, t.ID)
	}
}

func TestBook_ServesTenantsByShareAndRunsByPriorityAndOrder(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		size    int
		weights map[string]int
		tickets []schedule.Ticket
		at      time.Time
		want    []string
	}{
		{name: "order within a lane", size: 8, tickets: []schedule.Ticket{
			{ID: "c", Tenant: "a", Order: 3}, {ID: "a", Tenant: "a", Order: 1}, {ID: "b", Tenant: "a", Order: 2},
		}, want: []string{"a", "b", "c"}},
		{name: "tenants alternate", size: 8, tickets: []schedule.Ticket{
			{ID: "a1", Tenant: "a", Order: 1},
			{ID: "a2", Tenant: "a", Order: 2},
			{ID: "a3", Tenant: "a", Order: 3},
			{ID: "b1", Tenant: "b", Order: 9},
			{ID: "b2", Tenant: "b", Order: 10},
		}, want: []string{"a1", "b1", "a2", "b2", "a3"}},
		{name: "weights", size: 8, weights: map[string]int{"a": 2}, tickets: []schedule.Ticket{
			{ID: "a1", Tenant: "a", Order: 1},
			{ID: "a2", Tenant: "a", Order: 2},
			{ID: "a3", Tenant: "a", Order: 3},
			{ID: "a4", Tenant: "a", Order: 4},
			{ID: "b1", Tenant: "b", Order: 9},
			{ID: "b2", Tenant: "b", Order: 10},
		}, want: []string{"a1", "b1", "a2", "b2", "a3", "a4"}},
		{name: "higher priority first", size: 8, tickets: []schedule.Ticket{
			{ID: "low", Tenant: "a", Order: 1, Priority: -1, Since: now},
			{ID: "high", Tenant: "a", Order: 3, Priority: 5, Since: now},
			{ID: "mid", Tenant: "a", Order: 2, Since: now},
		}, at: now, want: []string{"high", "mid", "low"}},
		{name: "waiting raises priority", size: 8, tickets: []schedule.Ticket{
			{ID: "low", Tenant: "a", Order: 1, Since: now.Add(-3 * schedule.AgeStep)},
			{ID: "high", Tenant: "a", Order: 2, Priority: 2, Since: now},
		}, at: now, want: []string{"low", "high"}},
		{name: "not before its time", size: 8, tickets: []schedule.Ticket{
			{ID: "later", Tenant: "a", Order: 1, NotBefore: now.Add(time.Second)}, {ID: "now", Tenant: "a", Order: 2},
		}, at: now, want: []string{"now"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b, s := schedule.NewWaitList(), schedule.NewSlots(tt.size, weights(tt.weights))
			for _, k := range tt.tickets {
				b.Put(k)
			}
			require.Equal(t, tt.want, picks(b, s, tt.at))
		})
	}
}

func TestBook_BlockedLaneWaitsAloneAndIsUnblocked(t *testing.T) {
	t.Parallel()
	b, s := schedule.NewWaitList(), schedule.NewSlots(8, weights(nil))
	b.Put(schedule.Ticket{ID: "a1", Tenant: "a", Lane: "p1+p2", Order: 1})
	b.Put(schedule.Ticket{ID: "a2", Tenant: "a", Lane: "p1+p2", Order: 2})
	b.Put(schedule.Ticket{ID: "a3", Tenant: "a", Order: 3})
	b.Block("a", "p1+p2", now.Add(time.Minute))
	require.Equal(t, []string{"a3"}, picks(b, s, now))
	require.False(t, b.Ready("a", now))
	require.True(t, b.HasWaiting("a", "p1+p2"))
	require.True(t, b.Ready("a", now.Add(time.Minute)), "a block ends by itself")
	b.Unblock("p2")
	require.Equal(t, []string{"a1", "a2"}, picks(b, s, now))
	require.Zero(t, b.Len())
	require.False(t, b.HasWaiting("a", "p1+p2"))
}

func TestSlots_KeepTheReserveForTenantsBelowTheirShare(t *testing.T) {
	t.Parallel()
	s := schedule.NewSlots(16, weights(nil)) // and 2 in reserve
	for range 16 {
		require.True(t, s.Fits("a"), "alone, a tenant may have all regular slots")
		s.Acquire("a")
	}
	require.False(t, s.Fits("a"))
	require.Zero(t, s.Free())
	require.True(t, s.Fits("b"))
	s.Acquire("b")
	require.False(t, s.Fits("b"), "the last half is for tenants that hold nothing")
	require.True(t, s.Fits("c"))
	s.Acquire("c")
	require.False(t, s.Fits("d"))
	s.Release("a")
	require.True(t, s.Fits("d"))
	require.False(t, s.Fits("a"))
}

func TestSlots_OfOneHaveOneInReserve(t *testing.T) {
	t.Parallel()
	s := schedule.NewSlots(1, weights(nil))
	s.Acquire("a")
	require.False(t, s.Fits("a"))
	require.True(t, s.Fits("b"))
	s.Acquire("b")
	require.False(t, s.Fits("c"))
	require.Equal(t, 2, s.Held())
}

// While two tenants wait, both get as many slots, however many runs one of them has.
func TestBook_ConvergesToEqualShares(t *testing.T) {
	t.Parallel()
	b, s := schedule.NewWaitList(), schedule.NewSlots(8, weights(nil))
	held := []string{}
	serve := func() {
		for {
			k, ok := b.Next(now, s)
			if !ok {
				return
			}
			s.Acquire(k.Tenant)
			held = append(held, k.Tenant)
		}
	}
	for i := range 1000 {
		b.Put(schedule.Ticket{ID: fmt.Sprint("a", i), Tenant: "a", Order: uint64(i)})
	}
	serve()
	for i := range 100 {
		b.Put(schedule.Ticket{ID: fmt.Sprint("b", i), Tenant: "b", Order: uint64(1000 + i)})
	}
	for range 16 { // the oldest run ends
		serve()
		s.Release(held[0])
		held = held[1:]
	}
	serve()
	count := map[string]int{}
	for _, tenant := range held {
		count[tenant]++
	}
	require.InDelta(t, count["a"], count["b"], 1)
}

func BenchmarkBook_NextOf10000(b *testing.B) {
	book, s := schedule.NewWaitList(), schedule.NewSlots(1024, weights(nil))
	for i := range 10000 {
		book.Put(schedule.Ticket{ID: fmt.Sprint(i), Tenant: "a", Order: uint64(i)})
	}
	for i := 0; b.Loop(); i++ {
		t, _ := book.Next(now, s)
		t.Order = uint64(10000 + i)
		book.Put(t)
	}
}
