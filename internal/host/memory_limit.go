package host

import (
	"math"
	"runtime/debug"
)

// reserveMemory lowers the limit of Go's memory by what a part of the process takes beside it, to
// half of it at the most, so that both together stay below what GOMEMLIMIT was set for.
// Without GOMEMLIMIT there is no limit.
func reserveMemory(outside int64) {
	if limit := debug.SetMemoryLimit(-1); limit < math.MaxInt64 {
		debug.SetMemoryLimit(max(limit-outside, limit/2))
	}
}
