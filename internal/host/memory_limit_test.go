package host

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// Memory that a part of the process uses outside of Go is subtracted from Go's limit. Not parallel:
// the limit is global.
func TestLeaveRoom_LowersALimitThatIsSet(t *testing.T) { //nolint:paralleltest // see above
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for limit, want := range map[int64]int64{
		math.MaxInt64: math.MaxInt64,
		512 << 20:     432 << 20,
		100 << 20:     50 << 20,
	} {
		debug.SetMemoryLimit(limit)
		reserveMemory(80 << 20)
		require.Equal(t, want, debug.SetMemoryLimit(-1))
	}
}
