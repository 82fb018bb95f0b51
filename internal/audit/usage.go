package audit

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"waybill.dev/waybill/protocol/wire"
)

// usageEvery is how long uses of a key are counted in one entry. An entry per request would
// double the writes of a request, and hide the other entries.
const usageEvery = time.Minute

// flushTimeout limits the final recording when a process ends.
const flushTimeout = 3 * time.Second

// Usage records the use of keys: one entry per key and minute of use. It is safe for
// concurrent use. A process that ends before Run returns loses the counts of the last
// minute.
type Usage struct {
	to    Recorder
	clock func() time.Time
	log   *slog.Logger

	mu   sync.Mutex // guards what follows
	keys map[keyID]*usageCounts
}

type keyID struct{ tenant, key string }

// usageCounts are the uses of one key.
type usageCounts struct {
	first, last     time.Time
	granted, denied map[string]int64 // by scope
}

// NewUsage makes a counter.
func NewUsage(to Recorder, clock func() time.Time, log *slog.Logger) *Usage {
	return &Usage{to: to, clock: clock, log: log, keys: map[keyID]*usageCounts{}}
}

// Note counts a request with a key. granted: the key had the scope.
func (u *Usage) Note(tenant, key, scope string, granted bool) {
	now := u.clock()
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.keys[keyID{tenant, key}]
	if n == nil {
		n = &usageCounts{first: now, granted: map[string]int64{}, denied: map[string]int64{}}
		u.keys[keyID{tenant, key}] = n
	}
	n.last = now
	if granted {
		n.granted[scope]++
	} else {
		n.denied[scope]++
	}
}

// Run records the counts every minute, and the rest when ctx ends.
func (u *Usage) Run(ctx context.Context) error {
	t := time.NewTicker(usageEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			u.Flush(ctx)
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
			defer cancel()
			u.Flush(ctx)
			return nil
		}
	}
}

// Flush records the counts. Counts that cannot be recorded stay.
func (u *Usage) Flush(ctx context.Context) {
	u.mu.Lock()
	taken := u.keys
	u.keys = map[keyID]*usageCounts{}
	u.mu.Unlock()
	holders := slices.SortedFunc(maps.Keys(taken), func(a, b keyID) int {
		return strings.Compare(a.tenant+"\x00"+a.key, b.tenant+"\x00"+b.key)
	})
	for _, h := range holders {
		if err := u.to.Record(ctx, h.tenant, taken[h].entry(h.key)); err != nil {
			u.log.Warn("uses of a key could not be recorded; will retry", "error", err)
			u.restore(h, taken[h])
		}
	}
}

func (n *usageCounts) entry(key string) Entry {
	return Entry{Action: "key.used", Actor: key, Target: "keys/" + key, Details: map[string]any{
		"granted": n.granted, "denied": n.denied, "firstAt": wire.FormatTime(n.first), "lastAt": wire.FormatTime(n.last),
	}}
}

func (u *Usage) restore(h keyID, n *usageCounts) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if since := u.keys[h]; since != nil {
		n.last = since.last
		for scope, k := range since.granted {
			n.granted[scope] += k
		}
		for scope, k := range since.denied {
			n.denied[scope] += k
		}
	}
	u.keys[h] = n
}
