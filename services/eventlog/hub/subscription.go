package hub

import (
	"context"
	"errors"
	"sync"

	"waybill.dev/waybill/services/eventlog/store"
)

// ErrClosed means that the hub or the subscription was closed.
var ErrClosed = errors.New("subscription closed")

// ErrLagged means that frames were dropped. Continue from the store, which holds everything published so far.
var ErrLagged = errors.New("subscription lagged")

// queueBytes limits the frames of a queue, so that a follower that does not read keeps little of
// its run in memory. One frame may be larger.
const queueBytes = 1 << 20

// Subscription is one follower's queue. Next and Close may be called from different goroutines.
type Subscription struct {
	hub  *Hub
	key  store.Key
	wake chan struct{} // holds a token if there is something to take

	mu     sync.Mutex // guards the fields below
	queue  []*Frame
	bytes  int // of the queue
	lagged bool
	ended  bool
}

// Next waits for frames and returns all there are. Errors: ErrLagged, ErrClosed, and the context's.
func (s *Subscription) Next(ctx context.Context) ([]*Frame, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-s.wake:
		}
		if frames, err := s.take(); err != nil || len(frames) > 0 {
			return frames, err
		}
	}
}

func (s *Subscription) take() ([]*Frame, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		s.notify() // so that the next call ends too
		return nil, ErrClosed
	}
	if s.lagged {
		s.lagged = false
		return nil, ErrLagged
	}
	frames := s.queue
	s.queue, s.bytes = nil, 0
	return frames, nil
}

// Close ends the subscription. It is safe to call twice.
func (s *Subscription) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	subs := s.hub.subs[s.key]
	if _, ok := subs[s]; ok {
		delete(subs, s)
		s.hub.count.Add(-1)
		if len(subs) == 0 {
			delete(s.hub.subs, s.key)
		}
	}
	s.end()
}

func (s *Subscription) push(f *Frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lagged || s.ended {
		return
	}
	if len(s.queue) >= s.hub.queue || len(s.queue) > 0 && s.bytes+f.Bytes > queueBytes {
		s.queue, s.bytes, s.lagged = nil, 0, true
		s.hub.lags.Add(1)
	} else {
		s.queue, s.bytes = append(s.queue, f), s.bytes+f.Bytes
	}
	s.notify()
}

func (s *Subscription) miss() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.bytes, s.lagged = nil, 0, true
	s.notify()
}

func (s *Subscription) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.notify()
}

// notify adds a token; one is enough, because take takes everything.
func (s *Subscription) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
