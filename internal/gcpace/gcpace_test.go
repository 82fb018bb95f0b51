package gcpace

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPercent_GrowsToTheGoalWithinItsBounds(t *testing.T) {
	t.Parallel()
	p := &pacer{goal: 120 << 20, maxPercent: 300}
	for live, want := range map[uint64]int{
		0:         300,
		10 << 20:  300, // to 40 MB
		30 << 20:  300, // to the goal
		40 << 20:  200,
		50 << 20:  140,
		60 << 20:  100,
		100 << 20: 100, // twice is more than the goal
		120 << 20: 100,
		500 << 20: 100,
	} {
		require.Equal(t, want, p.percent(live), "%d bytes live", live)
	}
}

// waits is far longer than a collection takes.
const waits = 10 * time.Second

// What lives changes, and the pace after it.
func TestStart_FollowsTheHeap(t *testing.T) { //nolint:paralleltest // one heap
	before := debug.SetGCPercent(100)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	const goal = 64 << 20
	Start(goal, 300)
	held := make([]byte, 2*goal)
	paced := func(want uint64) func() bool {
		return func() bool {
			runtime.GC()
			s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
			metrics.Read(s)
			return s[0].Value.Uint64() == want
		}
	}
	require.Eventually(t, paced(100), waits, waits/1000, "much lives")
	runtime.KeepAlive(held) // from here on it is garbage
	require.Eventually(t, paced(300), waits, waits/1000, "little lives")
}
