// Package gcpace sets GOGC by the size of the live heap: a small heap may grow to several times its live
// size before it is collected, which saves processor time; a large one grows as without this package.
package gcpace

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Start sets GOGC after each collection, until the process ends: so that the next collection begins when
// the heap reaches goal bytes, but with at least the runtime's default and at most maxPercent.
func Start(goal uint64, maxPercent int) {
	p := &pacer{goal: goal, maxPercent: maxPercent}
	debug.SetGCPercent(p.percent(liveBytes()))
	p.await()
}

type pacer struct {
	goal       uint64
	maxPercent int
}

// trigger is unreachable at once, so its cleanup runs at each collection. It has a pointer, because small
// values without one share their memory with others.
type trigger struct{ _ *pacer }

// await sets GOGC at the end of the next collection.
func (p *pacer) await() {
	runtime.AddCleanup(&trigger{}, func(p *pacer) {
		debug.SetGCPercent(p.percent(liveBytes()))
		p.await()
	}, p)
}

// defaultPercent is the runtime's GOGC: less would cost more processor time than this package saves.
const defaultPercent = 100

// percent returns the GOGC for a live heap.
func (p *pacer) percent(live uint64) int {
	if live == 0 {
		return p.maxPercent
	}
	if live >= p.goal {
		return defaultPercent
	}
	return int(min(max((p.goal-live)*100/live, defaultPercent), uint64(p.maxPercent))) //nolint:gosec // G115: at most maxPercent
}

// liveBytes returns the size of the heap after the last collection.
func liveBytes() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
