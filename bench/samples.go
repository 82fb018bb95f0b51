package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// samples are single latencies. Percentiles are computed from all of them, never from means.
type samples []time.Duration

// sorted sorts the samples in place and returns them; percentile and spread require that.
func (s samples) sorted() samples {
	slices.Sort(s)
	return s
}

// percentile of sorted samples by nearest rank: the smallest sample that is not
// below p percent of them; 0 if there are none.
func (s samples) percentile(p float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	rank := int(math.Ceil(float64(len(s)) * p / 100))
	return s[min(max(rank, 1), len(s))-1]
}

// bucket counts the samples up to a bound and above the previous one.
type bucket struct {
	upTo  time.Duration // 0: slower than all bounds
	count int
}

// spread sorts samples into buckets with bounds 1, 2, 5, … from 20 µs to 1 s. Empty buckets at both
// ends are omitted.
func (s samples) spread() []bucket {
	var out []bucket
	rest := s
	take := func(upTo time.Duration, n int) {
		if n > 0 || len(out) > 0 && len(rest) > 0 {
			out = append(out, bucket{upTo, n})
		}
		rest = rest[n:]
	}
	for unit := 10 * time.Microsecond; unit <= time.Second; unit *= 10 {
		for _, by := range []int64{1, 2, 5} {
			bound := time.Duration(by * int64(unit))
			n, _ := slices.BinarySearch(rest, bound+1)
			take(bound, n)
		}
	}
	take(0, len(rest))
	return out
}

// short formats a latency with the measured precision.
func short(d time.Duration) string {
	switch {
	case d <= -time.Millisecond:
		return ms(d)
	case d < 100*time.Microsecond:
		return fmt.Sprintf("%.1f µs", float64(d)/1e3)
	case d < time.Millisecond:
		return fmt.Sprintf("%.0f µs", float64(d)/1e3)
	default:
		return ms(d)
	}
}
