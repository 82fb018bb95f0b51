package tool

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// mean is the mean of many pauses.
func mean(waits, priority int) time.Duration {
	const n = 2000
	var sum time.Duration
	for range n {
		sum += pause(waits, priority)
	}
	return sum / n
}

func TestPause_GrowsWithWaitsAndShrinksWithPriority(t *testing.T) {
	t.Parallel()
	require.Greater(t, mean(3, 0), mean(0, 0)*3)
	require.Greater(t, mean(4, 0), mean(4, 4)*2, "a higher priority tries sooner")
	require.Greater(t, mean(4, -4), mean(4, 0)*2)
	for _, priority := range []int{-10, -1, 0, 1, 10} {
		for _, waits := range []int{0, 5, 1000} {
			p := pause(waits, priority)
			require.GreaterOrEqual(t, p, minPause)
			require.LessOrEqual(t, p, minPause+longestWindow)
		}
	}
}
