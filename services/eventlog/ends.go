package eventlog

import (
	"context"
	"sync"
	"time"
)

// ends asks the log for its newest position, once for all callers that wait at the same time. A
// caller gets the answer to a question that was sent after it came: an earlier answer may lack what
// the caller knows to be stored.
type ends struct {
	ask   func(context.Context) (uint64, error)
	limit time.Duration

	mu     sync.Mutex // guards all below
	next   *endQuestion
	asking bool
}

// endQuestion is a question that is not yet sent, or its answer once done is closed.
type endQuestion struct {
	done chan struct{}
	end  uint64
	err  error
}

// get returns a position that no frame acknowledged before the call exceeds.
func (e *ends) get(ctx context.Context) (uint64, error) {
	e.mu.Lock()
	if e.next == nil {
		e.next = &endQuestion{done: make(chan struct{})}
	}
	q := e.next
	if !e.asking {
		e.asking = true
		go e.askAll() //nolint:contextcheck,gosec // it asks for others, too
	}
	e.mu.Unlock()
	select {
	case <-q.done:
		return q.end, q.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// askAll asks one question after another until no caller waits for one.
func (e *ends) askAll() {
	for {
		e.mu.Lock()
		q := e.next
		e.next = nil
		e.asking = q != nil
		e.mu.Unlock()
		if q == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), e.limit)
		q.end, q.err = e.ask(ctx)
		cancel()
		close(q.done)
	}
}
