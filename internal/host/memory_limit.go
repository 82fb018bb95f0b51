package host

import (
	"math"
	"runtime/debug"
)

// reserveMemory lowers the limit of Go's memory by what the process uses outside of Go, but to no
// less than half, so that both together stay below GOMEMLIMIT. Without GOMEMLIMIT there is no limit.
func reserveMemory(outside int64) {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		debug.SetMemoryLimit(max(limit-outside, limit/2))
	}
}
