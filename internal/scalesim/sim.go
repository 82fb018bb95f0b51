package scalesim

import (
	"math/rand/v2"
)

// Plan is how a day is to be carried.
type Plan struct {
	Shape Shape
	// Installations share the tenants, each with a log of its own.
	Installations int
	Placement     Placement
	// HandedOut is how many runs an installation's queue hands out at a time.
	HandedOut int
}

// Outcome is what came of a plan in the busiest hour.
type Outcome struct {
	Runs int
	// P50, P99 and Max are how long runs waited in a queue, in seconds.
	P50, P99, Max int
	// Busiest is what the installation with the most tenants' load met.
	Busiest Peaks
	// Left is how many runs still waited at the end of the hour.
	Left int
}

// Peaks are the most of something in a second.
type Peaks struct{ Runs, Frames, HandedOut int }

// longest bounds the waits that are told apart, in seconds.
const longest = hour

// Simulate has the runs of the day's busiest hour arrive. It is the same each time.
func Simulate(m Measured, d Day, p Plan) Outcome {
	var out Outcome
	waits := make([]int, longest+1)
	holds := d.holds(p.Shape.Calls)
	for i, share := range d.place(p.Installations, p.Placement) {
		in := &installation{
			rand: rand.New(rand.NewPCG(d.Seed, uint64(i))), plan: p, holds: holds, //nolint:gosec // G404, G115: a simulation
			frames: m.FramesPerSec(d), ends: make([]int, holds[len(holds)-1]+1), waits: waits,
		}
		for t := range hour {
			in.second(t, d.rate(t)*share)
		}
		out.Left += in.waiting
		out.Runs += in.arrived
		if in.peaks.Runs > out.Busiest.Runs {
			out.Busiest = in.peaks
		}
	}
	started := out.Runs - out.Left
	out.P50, out.P99, out.Max = quantile(waits, started/2), quantile(waits, started/100*99), quantile(waits, started-1)
	return out
}

// FramesPerSec is how many frames an installation is given in a second: what its log takes,
// and every event log reads, less what is spared.
func (m Measured) FramesPerSec(d Day) float64 {
	return min(m.AppendsPerSec, m.IngestPerSec) * (1 - d.Spare)
}

// quantile is the wait of the n-th run.
func quantile(waits []int, n int) int {
	for s, k := range waits {
		if n -= k; n < 0 {
			return s
		}
	}
	return len(waits) - 1
}

// installation is one log with its services.
type installation struct {
	rand   *rand.Rand
	plan   Plan
	holds  []int
	frames float64
	waits  []int

	// queue are the runs that wait, by the second in which they came; first is the oldest of
	// them.
	queue   [hour]int
	first   int
	waiting int
	arrived int
	held    int
	// ends are how many of those that are held end, by second; turn is whose time the next
	// one takes.
	ends  []int
	turn  int
	peaks Peaks
}

// second lets a second pass: runs end, come, and are handed out in their order, as far as
// the queue's limit and the log allow.
func (in *installation) second(t int, rate float64) {
	ended := &in.ends[t%len(in.ends)]
	in.held -= *ended
	*ended = 0
	n := arrivals(in.rand, rate)
	in.queue[t] += n
	in.waiting += n
	in.arrived += n
	room := max(0, in.frames-float64(n)) // a run's first frame is written as it comes
	begin := min(in.waiting, in.plan.HandedOut-in.held, int(room/(in.plan.Shape.Frames-1)))
	in.begin(t, begin)
	in.peaks.Runs = max(in.peaks.Runs, n)
	in.peaks.Frames = max(in.peaks.Frames, n+int(float64(begin)*(in.plan.Shape.Frames-1)))
	in.peaks.HandedOut = max(in.peaks.HandedOut, in.held)
}

// begin hands out n runs, the oldest first.
func (in *installation) begin(t, n int) {
	in.waiting -= n
	for left := n; left > 0; {
		k := min(left, in.queue[in.first])
		in.queue[in.first] -= k
		in.waits[t-in.first] += k
		if left -= k; in.queue[in.first] == 0 && in.first < t {
			in.first++
		}
	}
	for i := range min(n, quantiles) { // the runs are spread evenly over the times
		k := n / quantiles
		if i < n%quantiles {
			k++
		}
		if hold := in.holds[(in.turn+i)%quantiles]; hold > 0 {
			in.ends[(t+hold)%len(in.ends)] += k
			in.held += k
		}
	}
	in.turn = (in.turn + n) % quantiles
}
