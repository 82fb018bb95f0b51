package share

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Turns limits how many requests of one caller are worked on at a time. Others of that caller
// wait, first come, first served; other callers are not affected. It is safe for concurrent use.
type Turns struct {
	each int64

	mu sync.Mutex // guards by
	by map[string]*turn
}

// turn are the turns of one caller; users counts those that wait or work.
type turn struct {
	places *semaphore.Weighted
	users  int
}

// NewTurns lets each caller have that many turns at a time.
func NewTurns(each int64) *Turns { return &Turns{each: each, by: map[string]*turn{}} }

// Take waits for a turn; give ends it. The error is that of ctx.
func (t *Turns) Take(ctx context.Context, caller string) (give func(), err error) {
	own := t.join(caller)
	if err := own.places.Acquire(ctx, 1); err != nil {
		t.leave(caller, own)
		return nil, err
	}
	return sync.OnceFunc(func() {
		own.places.Release(1)
		t.leave(caller, own)
	}), nil
}

func (t *Turns) join(caller string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.by[caller]
	if own == nil {
		own = &turn{places: semaphore.NewWeighted(t.each)}
		t.by[caller] = own
	}
	own.users++
	return own
}

func (t *Turns) leave(caller string, own *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.users--; own.users == 0 {
		delete(t.by, caller)
	}
}
