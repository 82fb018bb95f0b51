package audit

import (
	"context"
	"time"
)

// maxBacklog limits the entries in memory while the log is unavailable.
const maxBacklog = 10_000

// backlogItem has entries that could not be recorded. Their callers got an error, but the
// actions may have happened. So they are recorded when the log is available again, with
// their original time.
type backlogItem struct {
	tenant  string
	entries []Entry // not redacted yet
	drafts  []draft // redacted; nil if not yet
	at      time.Time
}

func (o backlogItem) size() int { return max(len(o.entries), len(o.drafts)) }

// addToBacklog stores entries for a later attempt.
func (l *Log) addToBacklog(o backlogItem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.backlogSize+o.size() > maxBacklog {
		l.log.Error("audit log unavailable for too long; entries are lost", "entries", o.size())
		return
	}
	l.backlog, l.backlogSize = append(l.backlog, o), l.backlogSize+o.size()
}

// retryBacklog records the backlog, as far as possible.
func (l *Log) retryBacklog(ctx context.Context) {
	l.mu.Lock()
	items := l.backlog
	l.backlog, l.backlogSize = nil, 0
	l.mu.Unlock()
	var failed bool // the rest is not tried
	for _, o := range items {
		if failed || ctx.Err() != nil {
			l.addToBacklog(o)
			continue
		}
		if o.drafts == nil {
			drafts, err := l.drafts(ctx, o.tenant, o.entries, o.at)
			if err != nil {
				l.addToBacklog(o)
				failed = true
				continue
			}
			o.entries, o.drafts = nil, drafts
		}
		// On failure the writer adds them to the backlog again.
		failed = l.appendPending(ctx, o.tenant, &pending{drafts: o.drafts, buffer: true, done: make(chan error, 1)}) != nil
	}
}

// unbuffered is a recorder for callers that retry themselves.
type unbuffered struct{ l *Log }

// Record records entries; see Recorder.
func (o unbuffered) Record(ctx context.Context, tenant string, entries ...Entry) error {
	return o.l.record(ctx, tenant, entries, false)
}

// Once returns a recorder without a backlog: on an error the caller must retry.
func (l *Log) Once() Recorder { return unbuffered{l} }
