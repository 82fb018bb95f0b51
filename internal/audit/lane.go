package audit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// maxBatch and maxBatchBytes bound what one append stores.
	maxBatch      = 256
	maxBatchBytes = 512 << 10
	// appendTimeout bounds an append with all its tries. It is no caller's: an append
	// is shared by many.
	appendTimeout = 5 * time.Second
)

// pending are entries that wait to be stored.
type pending struct {
	drafts []draft
	keep   bool       // for later, if they cannot be stored
	done   chan error // gets one outcome; never blocks who tells it
}

// lane is a tenant's way into the log from this process: entries that wait for an
// append on its way are stored together by the next one.
type lane struct {
	l    *Log
	list List

	mu      sync.Mutex // guards what follows
	waiting []*pending
	busy    bool

	// What follows is the flusher's, of which there is one at a time.
	known bool
	pos   uint64
	tip   tip
}

func (n *lane) enter(p *pending) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting = append(n.waiting, p)
	if !n.busy {
		n.busy = true
		go n.flush() // ends when nobody waits
	}
}

func (n *lane) flush() {
	for {
		batch := n.take()
		if batch == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), appendTimeout)
		err := n.store(ctx, batch)
		cancel()
		for _, p := range batch {
			if err != nil && p.keep {
				n.l.owe(owed{tenant: n.list.Tenant, drafts: p.drafts})
			}
			p.done <- err
		}
	}
}

// take gives what the next append stores; nil: nobody waits.
func (n *lane) take() []*pending {
	n.mu.Lock()
	defer n.mu.Unlock()
	entries, bytes, taken := 0, 0, 0
	for _, p := range n.waiting {
		for _, d := range p.drafts {
			entries, bytes = entries+1, bytes+len(d.Details)
		}
		if taken > 0 && (entries > maxBatch || bytes > maxBatchBytes) {
			break
		}
		taken++
	}
	batch := n.waiting[:taken:taken]
	n.waiting = n.waiting[taken:]
	n.busy = taken > 0
	if taken == 0 {
		return nil
	}
	return batch
}

// store appends a batch behind whatever is the last entry.
func (n *lane) store(ctx context.Context, batch []*pending) error {
	for {
		if err := n.look(ctx); err != nil {
			return err
		}
		lines, end, err := n.render(batch)
		if err != nil {
			return err
		}
		first := n.tip.next
		pos, err := n.l.store.Append(ctx, n.list, first, lines, n.pos)
		if err == nil {
			n.pos, n.tip = pos, end
			n.l.count(first, end.next)
			return nil
		}
		n.known = false
		if !errors.Is(err, ErrConflict) || ctx.Err() != nil {
			return fmt.Errorf("append to the audit log of %s: %w", n.list.Tenant, err)
		}
	}
}

// look finds the end of the chain, unless it is known.
func (n *lane) look(ctx context.Context) error {
	if n.known {
		return nil
	}
	m, err := n.l.store.Last(ctx, n.list)
	if err != nil {
		return err
	}
	if n.tip, err = tipOf(m); err != nil {
		return err
	}
	n.pos = 0
	if m != nil {
		n.pos = m.Pos
	}
	n.known = true
	return nil
}

func (n *lane) render(batch []*pending) (lines [][]byte, end tip, err error) {
	end = n.tip
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

// count wakes who makes checkpoints when one is due by number.
func (l *Log) count(first, next int64) {
	if first/l.cfg.Every == next/l.cfg.Every {
		return
	}
	select {
	case l.full <- struct{}{}:
	default: // it is awake
	}
}
