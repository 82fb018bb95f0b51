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

// usageEvery is how long uses of a key are counted together. An entry for each request
// would double what a request writes, and bury the others.
const usageEvery = time.Minute

// flushTimeout bounds what is recorded when a process ends.
const flushTimeout = 3 * time.Second

// Usage records that keys are used: one entry for each key and minute in which it was.
// It is safe for concurrent use. Who ends without Run having ended loses the counts of
// that minute.
type Usage struct {
	to    Recorder
	clock func() time.Time
	log   *slog.Logger

	mu   sync.Mutex // guards what follows
	keys map[holder]*uses
}

type holder struct{ tenant, key string }

// uses are those of one key.
type uses struct {
	first, last     time.Time
	granted, denied map[string]int64 // by scope
}

// NewUsage makes a counter.
func NewUsage(to Recorder, clock func() time.Time, log *slog.Logger) *Usage {
	return &Usage{to: to, clock: clock, log: log, keys: map[holder]*uses{}}
}

// Note counts a request that a key was used for, and whether it had the scope.
func (u *Usage) Note(tenant, key, scope string, granted bool) {
	now := u.clock()
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.keys[holder{tenant, key}]
	if n == nil {
		n = &uses{first: now, granted: map[string]int64{}, denied: map[string]int64{}}
		u.keys[holder{tenant, key}] = n
	}
	n.last = now
	if granted {
		n.granted[scope]++
	} else {
		n.denied[scope]++
	}
}

// Run records every minute, and what is left when ctx ends.
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

// Flush records what was counted. What cannot be recorded is counted on.
func (u *Usage) Flush(ctx context.Context) {
	u.mu.Lock()
	taken := u.keys
	u.keys = map[holder]*uses{}
	u.mu.Unlock()
	holders := slices.SortedFunc(maps.Keys(taken), func(a, b holder) int {
		return strings.Compare(a.tenant+"\x00"+a.key, b.tenant+"\x00"+b.key)
	})
	for _, h := range holders {
		if err := u.to.Record(ctx, h.tenant, taken[h].entry(h.key)); err != nil {
			u.log.Warn("uses of a key are not recorded yet", "error", err)
			u.giveBack(h, taken[h])
		}
	}
}

func (n *uses) entry(key string) Entry {
	return Entry{Action: "key.used", Actor: key, Target: "keys/" + key, Details: map[string]any{
		"granted": n.granted, "denied": n.denied, "firstAt": wire.FormatTime(n.first), "lastAt": wire.FormatTime(n.last),
	}}
}

func (u *Usage) giveBack(h holder, n *uses) {
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
