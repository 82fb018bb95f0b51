package quarantine

import (
	"encoding/json"
	"maps"
	"sync"

	"waybill.dev/waybill/internal/kv"
)

// counts are the quarantined runs by reason, at the last read.
type counts struct {
	mu sync.Mutex // guards by
	by map[string]int
}

// emptyCounts has every reason with 0 runs.
func emptyCounts() map[string]int {
	by := map[string]int{}
	for _, reason := range Reasons() {
		by[reason] = 0
	}
	return by
}

// set counts records.
func (c *counts) set(all []kv.Entry) {
	by := emptyCounts()
	for _, there := range all {
		var e entry
		if json.Unmarshal(there.Value, &e) == nil && !e.Back {
			by[e.reason()]++
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.by = by
}

// Counts returns the quarantined runs of the installation by reason, at the last read of the list.
// It has every reason.
func (l *List) Counts() map[string]int {
	l.count.mu.Lock()
	defer l.count.mu.Unlock()
	if l.count.by == nil {
		return emptyCounts()
	}
	return maps.Clone(l.count.by)
}
