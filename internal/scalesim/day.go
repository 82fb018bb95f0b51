package scalesim

import (
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Day is what is assumed of the load. None of it is Waybill's: another day needs other
// numbers here.
type Day struct {
	Runs float64
	// Peak is the load of the busiest moment over the day's mean.
	Peak float64
	// Tenants share the runs by Zipf's law with the exponent Skew.
	Tenants int
	Skew    float64
	// Model is how long a call of a model takes: share by seconds.
	Model map[int]float64
	// Spare is the share of what an installation bears that is left for restarts and for
	// catching up.
	Spare float64
	Seed  uint64
}

// Billion is the day of the page.
func Billion() Day {
	return Day{
		Runs: 1e9, Peak: 1.8, Tenants: 100_000, Skew: 0.5,
		Model: map[int]float64{1: 0.50, 2: 0.25, 4: 0.15, 8: 0.07, 20: 0.03},
		Spare: 0.3, Seed: 1,
	}
}

// hour is how long is simulated: around the busiest moment.
const hour = 3600

// rate is how many runs arrive in second t of the busiest hour.
func (d Day) rate(t int) float64 {
	const day = 86400
	return d.Runs / day * (1 + (d.Peak-1)*math.Cos(2*math.Pi*float64(t-hour/2)/day))
}

// quantiles is into how many equal parts the times of runs are cut.
const quantiles = 32

// holds is how long dispatchers hold runs of so many calls, in seconds: quantiles of equal
// weight. A run without calls is held no second.
func (d Day) holds(calls int) []int {
	times := slices.Sorted(maps.Keys(d.Model)) // in order, so that sums are the same each time
	sum := []float64{1}
	for range calls {
		next := make([]float64, len(sum)+times[len(times)-1])
		for at, p := range sum {
			for _, s := range times {
				next[at+s] += p * d.Model[s]
			}
		}
		sum = next
	}
	out := make([]int, 0, quantiles)
	below := 0.0
	for s, p := range sum {
		for below += p; len(out) < quantiles && below >= (float64(len(out))+0.5)/quantiles; {
			out = append(out, s)
		}
	}
	return out
}

// Placement says which installation is whose.
type Placement string

// Placements. By size needs a table that somebody keeps; by hash needs nothing.
const (
	ByHash Placement = "by hash"
	BySize Placement = "by size"
)

// place is the share of the load that each of so many installations has.
func (d Day) place(installations int, by Placement) []float64 {
	out := make([]float64, installations)
	for i, share := range d.tenants() { // the largest first
		at := 0
		if by == ByHash {
			h := fnv.New64a()
			_, _ = h.Write([]byte("tenant-" + strconv.Itoa(i)))
			at = int(h.Sum64() % uint64(installations)) //nolint:gosec // G115: below the number of installations
		} else {
			at = least(out)
		}
		out[at] += share
	}
	return out
}

// tenants are their shares of the load, the largest first.
func (d Day) tenants() []float64 {
	out, sum := make([]float64, d.Tenants), 0.0
	for i := range out {
		out[i] = math.Pow(float64(i+1), -d.Skew)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// least is where the smallest is.
func least(of []float64) int {
	at := 0
	for i, v := range of {
		if v < of[at] {
			at = i
		}
	}
	return at
}

// arrivals is how many runs come in a second at a rate.
func arrivals(r *rand.Rand, rate float64) int {
	if rate > 50 {
		return max(0, int(math.Round(rate+math.Sqrt(rate)*r.NormFloat64())))
	}
	n, p, end := 0, 1.0, math.Exp(-rate)
	for p *= r.Float64(); p > end; p *= r.Float64() {
		n++
	}
	return n
}
