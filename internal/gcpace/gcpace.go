// Package gcpace trades memory for processor time as long as there is little of the first: a small heap may grow to
// several times what lives in it before it is collected, a large one only to twice that.
package gcpace

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Start has the heap collected when it reaches goal bytes, or twice what lived after the collection before where that
// is more; and when it has grown by most percent, if that comes first. It goes on for as long as the process does.
func Start(goal uint64, most int) {
	p := &pacer{goal: goal, most: most}
	debug.SetGCPercent(p.percent(live()))
	p.await()
}

type pacer struct {
	goal uint64
	most int
}

// beat is garbage from the start: its cleanup runs at each collection. It has a pointer, because
// small values without one share their memory with others.
type beat struct{ _ *pacer }

func (p *pacer) await() {
	runtime.AddCleanup(&beat{}, func(p *pacer) {
		debug.SetGCPercent(p.percent(live()))
		p.await()
	}, p)
}

// usual is GOGC's own default: less would cost more than it saves.
const usual = 100

// percent is how much may come to what lives.
func (p *pacer) percent(live uint64) int {
	if live == 0 {
		return p.most
	}
	if live >= p.goal {
		return usual
	}
	return int(min(max((p.goal-live)*100/live, usual), uint64(p.most))) //nolint:gosec // G115: at most most
}

// live is how many bytes the last collection has left.
func live() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}
