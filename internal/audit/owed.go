package audit

import (
	"context"
	"time"
)

// maxOwed bounds the entries that wait in memory while the log is away.
const maxOwed = 10_000

// owed are entries of what was done and could not be recorded. Whoever did it was told
// so, but what is done is done: it is recorded as soon as the log is back, with the time
// at which it was.
type owed struct {
	tenant  string
	entries []Entry // not scrubbed yet
	drafts  []draft // scrubbed; nil: not yet
	at      time.Time
}

func (o owed) size() int { return max(len(o.entries), len(o.drafts)) }

// owe keeps entries for later.
func (l *Log) owe(o owed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owing+o.size() > maxOwed {
		l.log.Error("the audit log is away for too long: entries are lost", "entries", o.size())
		return
	}
	l.debts, l.owing = append(l.debts, o), l.owing+o.size()
}

// pay records what is owed, as far as that can be done now.
func (l *Log) pay(ctx context.Context) {
	l.mu.Lock()
	debts := l.debts
	l.debts, l.owing = nil, 0
	l.mu.Unlock()
	var away bool // the rest is not tried
	for _, o := range debts {
		if away || ctx.Err() != nil {
			l.owe(o)
			continue
		}
		if o.drafts == nil {
			drafts, err := l.drafts(ctx, o.tenant, o.entries, o.at)
			if err != nil {
				l.owe(o)
				away = true
				continue
			}
			o.entries, o.drafts = nil, drafts
		}
		// What fails again is owed again, by the lane.
		away = l.enter(ctx, o.tenant, &pending{drafts: o.drafts, keep: true, done: make(chan error, 1)}) != nil
	}
}

// once is a recorder for callers who record anew what could not be recorded.
type once struct{ l *Log }

// Record takes entries in; see Recorder.
func (o once) Record(ctx context.Context, tenant string, entries ...Entry) error {
	return o.l.record(ctx, tenant, entries, false)
}

// Once is a recorder that keeps nothing for later.
func (l *Log) Once() Recorder { return once{l} }
