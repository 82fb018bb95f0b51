package tally

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
)

// Histogram counts durations in milliseconds by bin, in the order of the bins. Histograms of different
// hours and workflows can be added up, which percentiles cannot. A bin is at most an eighth as wide as
// its lower end, so a percentile is off by 6.25 % at most.
type Histogram []Bin

// Bin is the number of durations in a bin.
type Bin struct {
	At    int
	Count int64
}

// subBins is the number of bins per doubling, as a power of two.
const subBins = 3

// maxBin is the bin of the longest duration.
const maxBin = (62-subBins)<<subBins + 1<<(subBins+1) - 1

// binOf returns the bin of a duration: its value below 8, otherwise its exponent and the three bits
// after the first.
func binOf(ms int64) int {
	v := uint64(max(ms, 0)) //nolint:gosec // G115: not negative
	if v < 1<<subBins {
		return int(v)
	}
	e := bits.Len64(v) - 1 - subBins
	return e<<subBins + int(v>>e) //nolint:gosec // G115: below 16
}

// middle returns the middle of a bin.
func middle(bin int) int64 {
	if bin < 1<<(subBins+1) {
		return int64(bin)
	}
	e := bin>>subBins - 1
	low := int64(bin-e<<subBins) << e
	return low + int64(1)<<e/2
}

// Add counts a duration.
func (h *Histogram) Add(ms int64) { h.Merge(Histogram{{binOf(ms), 1}}) }

// Merge adds another histogram, in place if that has no further bins.
func (h *Histogram) Merge(other Histogram) {
	at := 0
	for i, b := range other {
		for at < len(*h) && (*h)[at].At < b.At {
			at++
		}
		if at == len(*h) || (*h)[at].At != b.At {
			*h = union(*h, other[i:])
			return
		}
		(*h)[at].Count = plus((*h)[at].Count, b.Count)
	}
}

// union returns the sum of two histograms in a list of its own.
func union(a, b Histogram) Histogram {
	out := make(Histogram, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].At < b[0].At:
			out, a = append(out, a[0]), a[1:]
		case a[0].At > b[0].At:
			out, b = append(out, b[0]), b[1:]
		default:
			out = append(out, Bin{a[0].At, plus(a[0].Count, b[0].Count)})
			a, b = a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// UnmarshalJSON reads a flat list of bins and counts, as older versions stored it.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	var flat []int64
	if err := json.Unmarshal(b, &flat); err != nil {
		return err
	}
	if len(flat)%2 != 0 {
		return fmt.Errorf("histogram of %d numbers, want pairs", len(flat))
	}
	*h = nil
	for pair := range slices.Chunk(flat, 2) {
		h.Merge(Histogram{{int(pair[0]), pair[1]}})
	}
	return nil
}

// Count returns the number of durations.
func (h Histogram) Count() (n int64) {
	for _, one := range h {
		n += one.Count
	}
	return n
}

// Percentiles returns the nearest-rank percentiles; nil if there are no durations.
func (h Histogram) Percentiles(ranks ...int64) []int64 {
	total := h.Count()
	if total == 0 {
		return nil
	}
	out := make([]int64, len(ranks))
	for i, rank := range ranks {
		want, seen := max((total*rank+99)/100, 1), int64(0)
		for _, bin := range h {
			if seen += bin.Count; seen >= want {
				out[i] = middle(bin.At)
				break
			}
		}
	}
	return out
}
