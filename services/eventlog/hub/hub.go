// Package hub distributes applied frames to the followers of a run, within the process.
//
// Frames are published after they are committed, in the order of the log. A subscription has a
// bounded queue. If it falls behind, it is notified, loses its queue and continues from the store.
// The publisher never blocks, and a run without followers costs nothing.
package hub

import (
	"encoding/json"
	"sync"
	"sync/atomic"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
)

// Frame is a committed frame, shared by all receivers: do not change it.
type Frame struct {
	First int
	Last  int
	Types []wire.EventType
	// Docs are the events' documents, byte for byte as they were appended.
	Docs []json.RawMessage
	// Bytes is the size of the documents.
	Bytes int
}

// Hub maps runs to their followers. It is safe for concurrent use.
type Hub struct {
	queue int
	count atomic.Int64 // subscriptions; publishing without any takes no lock
	lags  atomic.Int64

	watches atomic.Int64 // watched tenants, likewise
	board   board

	mu     sync.RWMutex // guards the fields below
	subs   map[store.Key]map[*Subscription]struct{}
	closed bool
}

// New returns a hub whose subscriptions queue up to a number of frames.
func New(queue int) *Hub {
	return &Hub{
		queue: queue,
		subs:  map[store.Key]map[*Subscription]struct{}{},
		board: board{tenants: map[string]*audience{}},
	}
}

// Subscribe starts to queue the frames of a run. The caller closes the subscription.
func (h *Hub) Subscribe(key store.Key) *Subscription {
	s := &Subscription{hub: h, key: key, wake: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		s.ended = true
		s.notify()
		return s
	}
	if h.subs[key] == nil {
		h.subs[key] = map[*Subscription]struct{}{}
	}
	h.subs[key][s] = struct{}{}
	h.count.Add(1)
	return s
}

// Publish queues committed frames for the followers of their runs.
func (h *Hub) Publish(frames []*frame.Frame) {
	if h.count.Load() == 0 {
		return
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, f := range frames {
		subs := h.subs[project.Key(f.Run)]
		if len(subs) == 0 || f.Last < f.First {
			continue
		}
		docs, err := wire.SplitArray(f.Body)
		if err != nil || len(docs) != len(f.Types) { // committed frames are complete; readers report the error
			h.miss(subs)
			continue
		}
		shared := &Frame{First: f.First, Last: f.Last, Types: f.Types, Docs: docs, Bytes: len(f.Body)}
		for s := range subs {
			s.push(shared)
		}
	}
}

// Touch makes followers of a run, and watchers of its tenant, read its row again.
func (h *Hub) Touch(key store.Key) {
	h.board.look(key)
	h.mu.RLock()
	defer h.mu.RUnlock()
	h.miss(h.subs[key])
}

// TouchAll makes all followers read the store again. The hub cannot tell which runs have changed,
// so all watches end.
func (h *Hub) TouchAll() {
	h.board.cut(ErrLagged, false)
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, subs := range h.subs {
		h.miss(subs)
	}
}

func (h *Hub) miss(subs map[*Subscription]struct{}) {
	for s := range subs {
		s.miss()
	}
}

// Close ends all subscriptions; later ones end immediately.
func (h *Hub) Close() {
	h.board.cut(ErrClosed, true)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, subs := range h.subs {
		for s := range subs {
			s.end()
		}
	}
}

// Subscriptions counts the open ones; Lags counts how often one fell behind.
func (h *Hub) Subscriptions() int64 { return h.count.Load() }

// Lags counts how often a subscription lost its queue.
func (h *Hub) Lags() int64 { return h.lags.Load() }
