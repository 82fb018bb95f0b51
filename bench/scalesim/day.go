package scalesim

import (
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

// Day is the assumed load of one day. It says nothing about Waybill: to simulate another day, change
// the numbers.
type Day struct {
	Runs float64
	// Peak is the load at the busiest moment over the day's mean.
	Peak float64
	// Tenants share the runs by Zipf's law with the exponent Skew.
	Tenants int
	Skew    float64
	// Model is the distribution of the duration of a model call: seconds → share.
	Model map[int]float64
	// Spare is the share of an installation's limits reserved for restarts and for catching up.
	Spare float64
	Seed  uint64
}

// Billion is the day of docs/scaling.md.
func Billion() Day {
	return Day{
		Runs: 1e9, Peak: 1.8, Tenants: 100_000, Skew: 0.5,
		Model: map[int]float64{1: 0.50, 2: 0.25, 4: 0.15, 8: 0.07, 20: 0.03},
		Spare: 0.3, Seed: 1,
	}
}

// hour is the simulated time in seconds: the hour around the busiest moment.
const hour = 3600

// rate is the number of runs that arrive in second t of the busiest hour.
func (d Day) rate(t int) float64 {
	const day = 86400
	return d.Runs / day * (1 + (d.Peak-1)*math.Cos(2*math.Pi*float64(t-hour/2)/day))
}

// quantiles is the number of durations that represent the distribution of hold times.
const quantiles = 32

// holdTimes returns how long dispatchers hold runs with this many calls: quantiles of equal weight,
// in seconds. A run without calls is held for 0 seconds.
func (d Day) holdTimes(calls int) []int {
	times := slices.Sorted(maps.Keys(d.Model)) // a fixed order, so that sums are reproducible
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

// meanHold is the mean time in seconds that a dispatcher holds a run.
func (d Day) meanHold(s Shape) float64 {
	sum := 0
	for _, h := range d.holdTimes(s.Calls) {
		sum += h
	}
	return float64(sum) / quantiles
}

// Placement is the rule that assigns tenants to installations.
type Placement string

// Placements. BySize needs an operator's table of tenants; ByHash needs none.
const (
	ByHash Placement = "by hash"
	BySize Placement = "by size"
)

// place returns each installation's share of the load.
func (d Day) place(installations int, by Placement) []float64 {
	out := make([]float64, installations)
	for i, share := range d.tenants() { // the largest first
		at := 0
		if by == ByHash {
			h := fnv.New64a()
			_, _ = h.Write([]byte("tenant-" + strconv.Itoa(i)))
			at = int(h.Sum64() % uint64(installations)) //nolint:gosec // G115: below the number of installations
		} else {
			at = indexOfMin(out)
		}
		out[at] += share
	}
	return out
}

// tenants returns the tenants' shares of the load, the largest first.
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

// indexOfMin returns the index of the first smallest value.
func indexOfMin(values []float64) int {
	at := 0
	for i, v := range values {
		if v < values[at] {
			at = i
		}
	}
	return at
}

// arrivals draws the number of runs that arrive in a second: Poisson, approximated by the normal
// distribution for high rates.
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
