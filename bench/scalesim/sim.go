package scalesim

import (
	"math/rand/v2"
)

// DefaultMaxHandedOut is the default of --max-handed-out.
const DefaultMaxHandedOut = 8192

// Plan is the setup to simulate.
type Plan struct {
	Shape Shape
	// Installations share the tenants. Each has its own log.
	Installations int
	Placement     Placement
	// MaxHandedOut is the limit of runs that dispatchers of one installation hold at the same time.
	MaxHandedOut int
}

// Outcome is the result of a plan in the busiest hour.
type Outcome struct {
	Runs int
	// P50, P99 and Max are the times that runs waited in a queue, in seconds.
	P50, P99, Max int
	// Busiest are the peaks of the installation with the most arrivals in a second.
	Busiest Peaks
	// Left is the number of runs still waiting at the end of the hour.
	Left int
}

// Peaks are maxima over all seconds.
type Peaks struct{ Runs, Frames, HandedOut int }

// Simulate simulates the day's busiest hour. Equal arguments give equal results.
func Simulate(m Measured, d Day, p Plan) Outcome {
	var out Outcome
	waits := make([]int, hour+1)
	holdTimes := d.holdTimes(p.Shape.Calls)
	for i, share := range d.place(p.Installations, p.Placement) {
		in := &installation{
			rand:      rand.New(rand.NewPCG(d.Seed, uint64(i))), //nolint:gosec // G404, G115: a simulation
			plan:      p,
			holdTimes: holdTimes,
			maxFrames: m.FramesPerSec(d),
			waits:     waits,
			ends:      make([]int, holdTimes[len(holdTimes)-1]+1),
		}
		for t := range hour {
			in.step(t, d.rate(t)*share)
		}
		out.Left += in.waiting
		out.Runs += in.arrived
		if in.peaks.Runs > out.Busiest.Runs {
			out.Busiest = in.peaks
		}
	}
	started := out.Runs - out.Left
	out.P50, out.P99, out.Max = waitOf(waits, started/2), waitOf(waits, started/100*99), waitOf(waits, started-1)
	return out
}

// FramesPerSec is the frame rate that an installation is planned for: what its log can append and
// every event log can read, without the reserve.
func (m Measured) FramesPerSec(d Day) float64 {
	return min(m.AppendsPerSec, m.IngestPerSec) * (1 - d.Spare)
}

// waitOf returns the wait of the n-th run, ordered by wait.
func waitOf(waits []int, n int) int {
	for s, k := range waits {
		if n -= k; n < 0 {
			return s
		}
	}
	return len(waits) - 1
}

// installation is one log with its services.
type installation struct {
	rand      *rand.Rand
	plan      Plan
	holdTimes []int
	maxFrames float64 // per second
	waits     []int   // number of runs by wait in seconds, shared by all installations

	// queue has the number of waiting runs by arrival second; oldest is the first second with any.
	queue   [hour]int
	oldest  int
	waiting int
	arrived int
	held    int
	// ends is a ring: the number of held runs that end, by second.
	ends []int
	// nextHold is the index of the hold time of the next run.
	nextHold int
	peaks    Peaks
}

// step simulates one second: runs end, runs arrive, and waiting runs are handed out in order, within
// the limits of queue and log.
func (in *installation) step(t int, rate float64) {
	ended := &in.ends[t%len(in.ends)]
	in.held -= *ended
	*ended = 0
	n := arrivals(in.rand, rate)
	in.queue[t] += n
	in.waiting += n
	in.arrived += n
	room := max(0, in.maxFrames-float64(n)) // an arriving run immediately writes its first frame
	started := min(in.waiting, in.plan.MaxHandedOut-in.held, int(room/(in.plan.Shape.Frames-1)))
	in.handOut(t, started)
	in.peaks.Runs = max(in.peaks.Runs, n)
	in.peaks.Frames = max(in.peaks.Frames, n+int(float64(started)*(in.plan.Shape.Frames-1)))
	in.peaks.HandedOut = max(in.peaks.HandedOut, in.held)
}

// handOut hands out n runs, the oldest first.
func (in *installation) handOut(t, n int) {
	in.waiting -= n
	for left := n; left > 0; {
		k := min(left, in.queue[in.oldest])
		in.queue[in.oldest] -= k
		in.waits[t-in.oldest] += k
		if left -= k; in.queue[in.oldest] == 0 && in.oldest < t {
			in.oldest++
		}
	}
	for i := range min(n, quantiles) { // spread the runs evenly over the hold times
		k := n / quantiles
		if i < n%quantiles {
			k++
		}
		if hold := in.holdTimes[(in.nextHold+i)%quantiles]; hold > 0 {
			in.ends[(t+hold)%len(in.ends)] += k
			in.held += k
		}
	}
	in.nextHold = (in.nextHold + n) % quantiles
}
