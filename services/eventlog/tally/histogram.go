package tally

import (
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Histogram counts durations in milliseconds by bin. Histograms of different hours and workflows can
// be added up, which percentiles cannot. A bin is at most an eighth as wide as its lower end, so a
// percentile is off by 6.25 % at most.
type Histogram map[int]int64

// subBins is the number of bins per doubling, as a power of two.
const subBins = 3

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
func (h *Histogram) Add(ms int64) {
	if *h == nil {
		*h = Histogram{}
	}
	(*h)[binOf(ms)]++
}

// Merge adds another histogram.
func (h *Histogram) Merge(other Histogram) {
	if *h == nil && len(other) > 0 {
		*h = Histogram{}
	}
	for bin, n := range other {
		(*h)[bin] += n
	}
}

// MarshalJSON writes pairs of bin and count as one flat list, which is much faster to read than an
// object.
func (h Histogram) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, bin := range slices.Sorted(maps.Keys(h)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(append(strconv.AppendInt(b, int64(bin), 10), ','), h[bin], 10)
	}
	return append(b, ']'), nil
}

// UnmarshalJSON reverses MarshalJSON.
func (h *Histogram) UnmarshalJSON(b []byte) error {
	text := strings.Trim(string(b), "[]")
	*h = Histogram{}
	for text != "" {
		bin, rest, _ := strings.Cut(text, ",")
		count, more, _ := strings.Cut(rest, ",")
		at, err := strconv.Atoi(bin)
		if err != nil {
			return err
		}
		if (*h)[at], err = strconv.ParseInt(count, 10, 64); err != nil {
			return err
		}
		text = more
	}
	return nil
}

// Count returns the number of durations.
func (h Histogram) Count() (n int64) {
	for _, one := range h {
		n += one
	}
	return n
}

// Percentiles returns the nearest-rank percentiles; nil if there are no durations.
func (h Histogram) Percentiles(ranks ...int64) []int64 {
	total := h.Count()
	if total == 0 {
		return nil
	}
	bins := slices.Sorted(maps.Keys(h))
	out := make([]int64, len(ranks))
	for i, rank := range ranks {
		want, seen := max((total*rank+99)/100, 1), int64(0)
		for _, bin := range bins {
			if seen += h[bin]; seen >= want {
				out[i] = middle(bin)
				break
			}
		}
	}
	return out
}
