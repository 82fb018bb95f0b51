package ingest

import (
	"container/heap"
	"context"
	"sync"
)

// progress holds the applied position and its waiters.
type progress struct {
	mu      sync.Mutex // guards the fields below
	pos     uint64
	waiting waiters
}

// waiter waits for a position. index is its index in the heap, -1 once removed.
type waiter struct {
	pos     uint64
	reached chan struct{}
	index   int
}

// applied returns the applied position.
func (p *progress) applied() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pos
}

// set sets the position; it goes back when the store is rebuilt.
func (p *progress) set(pos uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pos = pos
	for len(p.waiting) > 0 && p.waiting[0].pos <= pos {
		close(heap.Pop(&p.waiting).(*waiter).reached)
	}
}

// wait blocks until pos is reached or ctx ends.
func (p *progress) wait(ctx context.Context, pos uint64) error {
	p.mu.Lock()
	if p.pos >= pos {
		p.mu.Unlock()
		return nil
	}
	w := &waiter{pos: pos, reached: make(chan struct{})}
	heap.Push(&p.waiting, w)
	p.mu.Unlock()

	select {
	case <-w.reached:
		return nil
	case <-ctx.Done():
		p.leave(w)
		return ctx.Err()
	}
}

func (p *progress) leave(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.index >= 0 {
		heap.Remove(&p.waiting, w.index)
	}
}

// waiters is a heap with the earliest position on top.
type waiters []*waiter

func (h waiters) Len() int           { return len(h) }
func (h waiters) Less(i, j int) bool { return h[i].pos < h[j].pos }
func (h waiters) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is for package heap.
func (h *waiters) Push(x any) {
	w := x.(*waiter)
	w.index = len(*h)
	*h = append(*h, w)
}

// Pop is for package heap.
func (h *waiters) Pop() any {
	old := *h
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	w.index = -1
	return w
}
