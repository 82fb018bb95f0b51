// Package share divides places, or bytes of memory, among callers.
package share

import (
	"context"
	"sync"
)

// Pool is a number of places, or of bytes, that callers share. A caller alone gets at most
// three quarters of it. If n callers request more than is free, they get equal parts, so that later callers
// always find room. It is safe for concurrent use.
type Pool struct {
	limit int64
	// each limits what one caller holds, instead of a share; 0 means no limit.
	each int64
	// sole means that the only tenant uses the whole pool.
	sole bool

	mu   sync.Mutex // guards all below
	used int64
	by   map[string]int64
	// given is closed when places are given back; nil unless a caller waits.
	given chan struct{}
	// waiting is how much is waited for, by caller.
	waiting map[string]int64
}

// rest is how much a caller may hold, as a multiple of what remains free.
const rest = 3

// maxWaiting is how much one caller may wait for, as a multiple of the pool: what is waited for may
// be in memory already.
const maxWaiting = 4

// New makes a pool; a limit of 0 means no limit. sole: all places belong to one tenant.
func New(limit int64, sole bool) *Pool {
	return &Pool{limit: limit, sole: sole, by: map[string]int64{}, waiting: map[string]int64{}}
}

// NewEach makes a pool in which one caller holds at most each; 0 means no limit.
func NewEach(limit, each int64) *Pool {
	p := New(limit, true)
	p.each = each
	return p
}

// Limit returns the size of the pool; 0 means no limit.
func (p *Pool) Limit() int64 { return p.limit }

// Used returns how much is in use.
func (p *Pool) Used() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}

// Take takes n places for a caller. It returns false if there are not enough, or if the
// caller would hold more than its share. A caller without any place gets one that is free.
func (p *Pool) Take(caller string, n int64) bool { return p.TakeWithin(caller, n, p.limit) }

// TakeWithin takes n places if at most limit are in use then.
func (p *Pool) TakeWithin(caller string, n, limit int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.replace(caller, 0, n, limit)
}

// Resize replaces from places of a caller by to places. Without room for more it changes nothing
// and returns false.
func (p *Pool) Resize(caller string, from, to int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if to <= from {
		p.give(caller, from-to)
		return true
	}
	return p.replace(caller, from, to, p.limit)
}

// replace takes places instead of those that the caller has. p.mu is locked.
func (p *Pool) replace(caller string, from, to, limit int64) bool {
	own, used := p.by[caller]-from, p.used-from
	if p.each > 0 && own+to > p.each {
		return false
	}
	if free := limit - used - to; p.limit > 0 && (free < 0 || own > 0 && !p.sole && own+to > rest*free) {
		return false
	}
	p.used = used + to
	p.by[caller] = own + to
	return true
}

// Give returns n places of a caller.
func (p *Pool) Give(caller string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.give(caller, n)
}

// give returns places. p.mu is locked.
func (p *Pool) give(caller string, n int64) {
	p.used -= n
	if p.by[caller] -= n; p.by[caller] <= 0 {
		delete(p.by, caller)
	}
	if p.given != nil {
		close(p.given)
		p.given = nil
	}
}

// Wait takes n places as soon as Take would. It returns false if ctx ends before, or if the caller
// already waits for too much.
func (p *Pool) Wait(ctx context.Context, caller string, n int64) bool {
	if p.Take(caller, n) {
		return true
	}
	if !p.queue(caller, n) {
		return false
	}
	defer p.queue(caller, -n)
	for {
		given := p.notice()
		if p.Take(caller, n) {
			return true
		}
		select {
		case <-given:
		case <-ctx.Done():
			return false
		}
	}
}

// queue counts the amount a caller waits for. It returns false if the amount exceeds the limit.
func (p *Pool) queue(caller string, n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n > 0 && p.waiting[caller]+n > maxWaiting*p.limit {
		return false
	}
	if p.waiting[caller] += n; p.waiting[caller] == 0 {
		delete(p.waiting, caller)
	}
	return true
}

// notice returns a channel that is closed when places are given back.
func (p *Pool) notice() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.given == nil {
		p.given = make(chan struct{})
	}
	return p.given
}
