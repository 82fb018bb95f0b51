package quarantine

import (
	"encoding/json"
	"maps"
	"sync"

	"waybill.dev/waybill/internal/kv"
)

// counts are the quarantined runs by reason, as last read.
type counts struct {
	mu sync.Mutex // guards by
	by map[string]int
}

// emptyCounts has each reason with no runs.
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

// Counts are the quarantined runs of the installation by reason, as of the last time that the
// list was read. Every reason is there.
func (l *List) Counts() map[string]int {
	l.count.mu.Lock()
	defer l.count.mu.Unlock()
	if l.count.by == nil {
		return emptyCounts()
	}
	return maps.Clone(l.count.by)
}
