package share_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/share"
)

// fill takes places one by one until there are no more.
func fill(p *share.Pool, caller string) (held int) {
	for p.Take(caller, 1) {
		held++
	}
	return held
}

func TestPool_KeepsRoomForOthers(t *testing.T) {
	t.Parallel()
	p := share.New(100, false)
	require.Equal(t, 75, fill(p, "greedy"))
	require.Positive(t, fill(p, "other"))
	require.True(t, p.Take("third", 1), "a caller that comes last finds a place")
	p.Give("greedy", 75)
	require.Greater(t, fill(p, "third"), 30, "places that are given back are free for all")
}

func TestPool_GivesOneTenantAll(t *testing.T) {
	t.Parallel()
	require.Equal(t, 100, fill(share.New(100, true), "only"))
}

func TestPool_TakesWhatFits(t *testing.T) {
	t.Parallel()
	p := share.New(100, false)
	require.False(t, p.Take("a", 101))
	require.True(t, p.Take("a", 100), "a caller without anything gets what fits")
	require.False(t, p.Take("b", 1))
	p.Give("a", 100)
	require.Zero(t, p.Used())
	require.True(t, share.New(0, false).Take("a", 1<<40), "0 means no limit")
}

func TestPool_Resizes(t *testing.T) {
	t.Parallel()
	p := share.New(100, false)
	require.True(t, p.Take("a", 10))
	require.False(t, p.Resize("a", 10, 101))
	require.EqualValues(t, 10, p.Used(), "without room nothing changes")
	require.True(t, p.Resize("a", 10, 100), "as if it had nothing")
	require.True(t, p.Resize("a", 100, 20))
	require.True(t, p.Take("b", 50))
	require.False(t, p.Resize("a", 20, 60))
	require.True(t, p.Take("a", 2))
	require.False(t, p.Resize("a", 20, 48), "more than its share with the other 2")
	require.True(t, p.Resize("a", 20, 0))
	require.EqualValues(t, 52, p.Used())
}

// What is waited for may be in memory already, so a caller does not wait for everything.
func TestPool_WaitsForSomeOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := share.New(10, false)
		require.True(t, p.Take("other", 10))
		got := make(chan bool)
		for range 4 {
			go func() { got <- p.Wait(t.Context(), "a", 10) }()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.False(t, p.Wait(ctx, "a", 1))
		require.NoError(t, ctx.Err(), "it is refused at once")
		require.False(t, p.Wait(ctx, "b", 1), "another caller waits")
		require.Error(t, ctx.Err())
		p.Give("other", 10)
		for range 4 {
			require.True(t, <-got)
			p.Give("a", 10)
		}
		require.Zero(t, p.Used())
		require.True(t, p.Wait(t.Context(), "a", 10))
	})
}
