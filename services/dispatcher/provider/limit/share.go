package limit

import (
	"maps"
	"slices"
)

// Share is this process's part of the limits of all dispatchers.
type Share struct {
	// Rank is the position of this process among the live dispatchers, from 0. All use the same
	// order.
	Rank int
	// Of is the number of live dispatchers. 0 means unknown: calls of limited providers wait.
	Of int
}

// Alone is the share of the only dispatcher.
var Alone = Share{Of: 1}

// calls returns this process's share of a limit on calls in flight. The shares add up to the limit.
// Each process has at least one call, because its runs would otherwise wait forever. With fewer
// calls than processes the shares therefore exceed the limit.
func (s Share) calls(limit int) int {
	n := limit / s.Of
	if s.Rank < limit%s.Of {
		n++
	}
	return max(n, 1)
}

// Exceeded returns the providers with fewer concurrent calls than dispatchers, sorted.
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
