package eventlog

import (
	"context"
	"sync"
	"time"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/eventlog/store"
)

// maxAsked limits the concurrent questions of one tenant for the last position of a run. The log
// answers with the whole last frame, which may be large, over a connection that all tenants share.
const maxAsked = 8

// positions asks the log for the last positions of runs. Callers that ask for the same run before
// its question was sent share the answer, so that many readers of one run cost as much as a few.
// It is safe for concurrent use.
type positions struct {
	log     Log
	timeout time.Duration

	mu      sync.Mutex // guards all below
	pending map[store.Key]*question
	tenants map[string]*asker
}

// question is one question for a run's last position.
type question struct {
	done chan struct{} // closed when pos and err are set
	pos  uint64
	err  error
}

// asker has the questions of one tenant: those that wait, first come, first served.
type asker struct {
	asked   int
	waiting []func()
}

func newPositions(log Log, timeout time.Duration) *positions {
	return &positions{log: log, timeout: timeout, pending: map[store.Key]*question{}, tenants: map[string]*asker{}}
}

// last returns the position of a run's last frame at some time after the call.
func (p *positions) last(ctx context.Context, key store.Key) (uint64, error) {
	p.mu.Lock()
	q := p.pending[key]
	if q == nil {
		q = &question{done: make(chan struct{})}
		p.pending[key] = q
		shared := context.WithoutCancel(ctx) // one caller that leaves must not fail the others
		p.begin(key.Tenant, func() { go p.ask(shared, key, q) })
	}
	p.mu.Unlock()
	select {
	case <-q.done:
		return q.pos, q.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// begin calls ask when the tenant has fewer than maxAsked questions. p.mu is held, also by later
// calls of ask.
func (p *positions) begin(tenant string, ask func()) {
	a := p.tenants[tenant]
	if a == nil {
		a = &asker{}
		p.tenants[tenant] = a
	}
	if a.asked >= maxAsked {
		a.waiting = append(a.waiting, ask)
		return
	}
	a.asked++
	ask()
}

// ask asks the log. Later callers need a later answer, so they no longer share this one.
func (p *positions) ask(ctx context.Context, key store.Key, q *question) {
	p.mu.Lock()
	delete(p.pending, key)
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	f, err := p.log.Last(ctx, subject.Run{Tenant: key.Tenant, RunID: key.RunID})
	if q.err = err; err == nil {
		q.pos = f.Pos
	}
	close(q.done)
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.tenants[key.Tenant]
	if len(a.waiting) > 0 {
		next := a.waiting[0]
		a.waiting = a.waiting[1:]
		next()
		return
	}
	if a.asked--; a.asked == 0 {
		delete(p.tenants, key.Tenant)
	}
}
