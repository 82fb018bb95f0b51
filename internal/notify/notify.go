// Package notify publishes notices to subscribers in all processes. Notices are not buffered: late or
// slow subscribers miss them.
//
// A process has one subscription at the broker for all its subscribers.
package notify

import (
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"waybill.dev/waybill/protocol/subject"
)

// Topic identifies the subject of notices within a tenant.
type Topic struct{ Tenant, ID string }

// queue is the number of notices buffered per listener; further ones are dropped.
const queue = 64

// Hub publishes notices. It is safe for concurrent use.
type Hub struct {
	nc     *nats.Conn // nil means within this process only
	prefix string
	sub    *nats.Subscription

	mu        sync.Mutex // guards the fields below
	listeners map[Topic]map[*Listener]struct{}
}

// New returns a hub; all processes use the same name. A nil nc limits it to this process.
func New(nc *nats.Conn, name string) (*Hub, error) {
	h := &Hub{nc: nc, prefix: "waybill.notify." + name + ".", listeners: map[Topic]map[*Listener]struct{}{}}
	if nc == nil {
		return h, nil
	}
	var err error
	h.sub, err = nc.Subscribe(h.prefix+"*.*", func(m *nats.Msg) {
		tenant, id, ok := strings.Cut(strings.TrimPrefix(m.Subject, h.prefix), ".")
		if ok {
			h.deliver(Topic{tenant, id}, m.Data)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listen for notices of %s: %w", name, err)
	}
	return h, nil
}

// Close ends the subscription at the broker; the connection is its owner's.
func (h *Hub) Close() {
	if h.sub != nil {
		_ = h.sub.Unsubscribe() // it ends with the connection anyway
	}
}

// Publish sends a notice to all listeners of a topic. Data must not be changed afterwards.
func (h *Hub) Publish(t Topic, data []byte) error {
	if !subject.Token(t.Tenant) || !subject.Token(t.ID) {
		return fmt.Errorf("notify: topic %q.%q: want letters, digits, _ and -", t.Tenant, t.ID)
	}
	if h.nc == nil {
		h.deliver(t, data)
		return nil
	}
	if err := h.nc.Publish(h.prefix+t.Tenant+"."+t.ID, data); err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	return nil
}

func (h *Hub) deliver(t Topic, data []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners[t] {
		select {
		case l.in <- data:
		default: // too slow: drop
		}
	}
}

// Listener receives the notices of one topic until it is closed.
type Listener struct {
	hub   *Hub
	topic Topic
	in    chan []byte
}

// Listen returns a new listener; the caller closes it.
func (h *Hub) Listen(t Topic) *Listener {
	l := &Listener{hub: h, topic: t, in: make(chan []byte, queue)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.listeners[t] == nil {
		h.listeners[t] = map[*Listener]struct{}{}
	}
	h.listeners[t][l] = struct{}{}
	return l
}

// C returns the channel of notices.
func (l *Listener) C() <-chan []byte { return l.in }

// Close closes the listener. It is safe to call twice.
func (l *Listener) Close() {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	delete(l.hub.listeners[l.topic], l)
	if len(l.hub.listeners[l.topic]) == 0 {
		delete(l.hub.listeners, l.topic)
	}
}
