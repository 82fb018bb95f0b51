package share_test

import (
	"testing"

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
