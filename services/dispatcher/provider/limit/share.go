package limit

import (
	"maps"
	"slices"
)

// Share is this process's part of the limits, which are those of all dispatchers together.
type Share struct {
	// Rank is the place of this process among the live dispatchers, from 0. All of them use
	// the same order.
	Rank int
	// Of is the number of live dispatchers; 0 means it is not known yet, and calls of limited
	// providers wait.
	Of int
}

// Alone is the share of the only dispatcher.
var Alone = Share{Of: 1}

// calls are this process's calls of a limit on calls in flight. The shares of all processes
// add up to the limit. Every process has one call at least, so they add up to more with fewer
// calls than processes: without one, the runs of a process would wait for ever.
func (s Share) calls(limit int) int {
	n := limit / s.Of
	if s.Rank < limit%s.Of {
		n++
	}
	return max(n, 1)
}

// Exceeded are the providers with fewer concurrent calls than there are dispatchers, sorted.
func (a *All) Exceeded(dispatchers int) (out []string) {
	if a == nil {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(a.byID)) {
		if n := a.byID[id].MaxConcurrent; n > 0 && n < dispatchers {
			out = append(out, id)
		}
	}
	return out
}
