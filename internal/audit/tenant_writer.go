package audit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// maxBatch and maxBatchBytes limit the entries of one append.
	maxBatch      = 256
	maxBatchBytes = 512 << 10
	// appendTimeout limits an append with all its attempts. A caller's context does not,
	// since an append has the entries of several callers.
	appendTimeout = 5 * time.Second
)

// pending are entries that wait to be stored.
type pending struct {
	drafts []draft
	buffer bool       // add to the backlog if they cannot be stored
	done   chan error // gets one result; buffered
}

// tenantWriter appends the entries of a tenant. Entries that arrive during an append share
// the next one.
type tenantWriter struct {
	log  *Log
	list List

	mu      sync.Mutex // guards what follows
	waiting []*pending
	busy    bool

	// Only flush uses the following. It runs once at a time.
	tipLoaded bool
	pos       uint64
	tip       tip
}

func (w *tenantWriter) enqueue(p *pending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, p)
	if !w.busy {
		w.busy = true
		go w.flush() // ends when no entries wait
	}
}

func (w *tenantWriter) flush() {
	for {
		batch := w.nextBatch()
		if batch == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
		err := w.appendBatch(ctx, batch)
		cancel()
		for _, p := range batch {
			if err != nil && p.buffer {
				w.log.addToBacklog(backlogItem{tenant: w.list.Tenant, drafts: p.drafts})
			}
			p.done <- err
		}
	}
}

// nextBatch returns the entries of the next append; nil if none wait.
func (w *tenantWriter) nextBatch() []*pending {
	w.mu.Lock()
	defer w.mu.Unlock()
	entries, bytes, taken := 0, 0, 0
	for _, p := range w.waiting {
		for _, d := range p.drafts {
			entries, bytes = entries+1, bytes+len(d.Details)
		}
		if taken > 0 && (entries > maxBatch || bytes > maxBatchBytes) {
			break
		}
		taken++
	}
	batch := w.waiting[:taken:taken]
	w.waiting = w.waiting[taken:]
	w.busy = taken > 0
	if taken == 0 {
		return nil
	}
	return batch
}

// appendBatch appends a batch after the last entry of the log.
func (w *tenantWriter) appendBatch(ctx context.Context, batch []*pending) error {
	for {
		if err := w.loadTip(ctx); err != nil {
			return err
		}
		lines, end, err := w.render(batch)
		if err != nil {
			return err
		}
		first := w.tip.next
		pos, err := w.log.store.Append(ctx, w.list, first, lines, w.pos)
		if err == nil {
			w.pos, w.tip = pos, end
			w.log.notifyFull(first, end.next)
			return nil
		}
		w.tipLoaded = false
		if !errors.Is(err, ErrConflict) || ctx.Err() != nil {
			return fmt.Errorf("append to the audit log of %s: %w", w.list.Tenant, err)
		}
	}
}

// loadTip reads the end of the chain if it is unknown.
func (w *tenantWriter) loadTip(ctx context.Context) error {
	if w.tipLoaded {
		return nil
	}
	m, err := w.log.store.Last(ctx, w.list)
	if err != nil {
		return err
	}
	if w.tip, err = tipOf(m); err != nil {
		return err
	}
	w.pos = 0
	if m != nil {
		w.pos = m.Pos
	}
	w.tipLoaded = true
	return nil
}

func (w *tenantWriter) render(batch []*pending) (lines [][]byte, end tip, err error) {
	end = w.tip
	for _, p := range batch {
		for _, d := range p.drafts {
			var line []byte
			if line, end, err = end.link(d); err != nil {
				return nil, end, err
			}
			lines = append(lines, line)
		}
	}
	return lines, end, nil
}

// notifyFull wakes Run when Every entries need a checkpoint.
func (l *Log) notifyFull(first, next int64) {
	if first/l.cfg.Every == next/l.cfg.Every {
		return
	}
	select {
	case l.checkpointDue <- struct{}{}:
	default: // Run is already notified
	}
}
