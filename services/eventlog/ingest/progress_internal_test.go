package ingest

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestProgress_WakesExactlyThoseWhosePositionIsReached(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		wants := rapid.SliceOfN(rapid.Uint64Range(0, 30), 1, 20).Draw(rt, "wants")
		moves := rapid.SliceOfN(rapid.Uint64Range(0, 30), 1, 10).Draw(rt, "moves")
		synctest.Test(t, func(t *testing.T) {
			var p progress
			ctx, cancel := context.WithCancel(t.Context())
			var mu sync.Mutex
			woken := map[int]bool{}
			var wg sync.WaitGroup
			for i, pos := range wants {
				wg.Go(func() {
					if p.wait(ctx, pos) == nil {
						mu.Lock()
						defer mu.Unlock()
						woken[i] = true
					}
				})
			}
			highest := uint64(0)
			for _, pos := range moves {
				synctest.Wait()
				p.set(pos)
				synctest.Wait()
				highest = max(highest, pos)
				mu.Lock()
				for i, want := range wants {
					require.Equal(t, want <= highest, woken[i], "waits for %d, highest was %d", want, highest)
				}
				mu.Unlock()
			}
			cancel()
			wg.Wait()
			require.Empty(t, p.waiting, "no waiter is left")
		})
	})
}

func TestReach_CountsADamagedFrameOnlyWhenNothingIsMissingBeforeIt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		a      arrival
		before uint64
		want   uint64
	}{
		{"batch", arrival{upTo: 9}, 4, 9},
		{"batch of old frames", arrival{upTo: 3}, 4, 4},
		{"damaged next", arrival{damaged: 5}, 4, 5},
		{"damaged behind a gap", arrival{damaged: 6}, 4, 4},
		{"damaged, seen before", arrival{damaged: 4}, 4, 4},
		{"nothing", arrival{}, 4, 4},
		{"nothing at the start", arrival{}, 0, 0},
	} {
		require.Equal(t, tt.want, tt.a.reach(tt.before), tt.name)
	}
}
