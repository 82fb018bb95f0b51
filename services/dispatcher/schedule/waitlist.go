package schedule

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// AgeStep is how long a run waits until it counts as one priority higher.
const AgeStep = 30 * time.Second

// keptBlocks is how many blocks are kept before those that have ended are dropped.
const keptBlocks = 1024

// Ticket is a run that waits for a slot.
type Ticket struct {
	// ID is unique among tickets.
	ID     string
	Tenant string
	// Lane names the limits that the run is subject to; empty: none. Runs of one lane wait in
	// line.
	Lane     string
	Priority int
	// Order is the run's place in its lane: the lower, the earlier.
	Order uint64
	// Since is when it began to wait, NotBefore when it may be served at the earliest.
	Since, NotBefore time.Time
}

// WaitList holds the waiting runs that a dispatcher may pick. It is not safe for concurrent use.
type WaitList struct {
	tickets map[string]Ticket
	tenants map[string]*line
	// blocked says until when the runs of a lane cannot be served.
	blocked map[laneKey]time.Time
	served  uint64
}

type laneKey struct{ tenant, lane string }

// line is the waiting runs of one tenant.
type line struct {
	tenant string
	queues map[queueKey][]Ticket // each sorted by Order; none is empty
	// served is the number of the last pick of the tenant.
	served uint64
}

type queueKey struct {
	lane     string
	priority int
}

// NewWaitList is an empty book.
func NewWaitList() *WaitList {
	return &WaitList{tickets: map[string]Ticket{}, tenants: map[string]*line{}, blocked: map[laneKey]time.Time{}}
}

// Len is how many runs wait.
func (b *WaitList) Len() int { return len(b.tickets) }

// Put adds a ticket, or replaces the one of the same ID.
func (b *WaitList) Put(t Ticket) {
	b.Remove(t.ID)
	b.tickets[t.ID] = t
	l := b.tenants[t.Tenant]
	if l == nil {
		l = &line{tenant: t.Tenant, queues: map[queueKey][]Ticket{}}
		b.tenants[t.Tenant] = l
	}
	k := queueKey{t.Lane, t.Priority}
	at, _ := slices.BinarySearchFunc(l.queues[k], t, inOrder)
	l.queues[k] = slices.Insert(l.queues[k], at, t)
}

// inOrder sorts the tickets of a queue.
func inOrder(a, b Ticket) int {
	return cmp.Or(cmp.Compare(a.Order, b.Order), strings.Compare(a.ID, b.ID))
}

// Remove drops a ticket; an unknown ID changes nothing.
func (b *WaitList) Remove(id string) {
	t, ok := b.tickets[id]
	if !ok {
		return
	}
	delete(b.tickets, id)
	l, k := b.tenants[t.Tenant], queueKey{t.Lane, t.Priority}
	q := l.queues[k]
	if at, found := slices.BinarySearchFunc(q, t, inOrder); found {
		if at == 0 {
			q = q[1:] // the usual case moves nothing
		} else {
			q = slices.Delete(q, at, at+1)
		}
	}
	if len(q) > 0 {
		l.queues[k] = q
		return
	}
	if delete(l.queues, k); len(l.queues) == 0 {
		delete(b.tenants, t.Tenant)
	}
}

// Block keeps the runs of a lane waiting until an instant, or until Unblock.
func (b *WaitList) Block(tenant, lane string, until time.Time) {
	b.blocked[laneKey{tenant, lane}] = until
}

// Unblock ends the block of all lanes whose name contains part.
func (b *WaitList) Unblock(part string) {
	for k := range b.blocked {
		if strings.Contains(k.lane, part) {
			delete(b.blocked, k)
		}
	}
}

// isBlocked reports whether a lane is blocked, and forgets a block that has ended.
func (b *WaitList) isBlocked(tenant, lane string, now time.Time) bool {
	k := laneKey{tenant, lane}
	until, ok := b.blocked[k]
	if ok && !until.After(now) {
		delete(b.blocked, k)
		return false
	}
	return ok
}

// HasWaiting reports whether runs of the lane wait: a new one must line up behind them.
func (b *WaitList) HasWaiting(tenant, lane string) bool {
	if l := b.tenants[tenant]; l != nil {
		for k := range l.queues {
			if k.lane == lane {
				return true
			}
		}
	}
	return false
}

// Ready reports whether a run of the tenant waits for a slot only.
func (b *WaitList) Ready(tenant string, now time.Time) bool {
	l := b.tenants[tenant]
	if l == nil {
		return false
	}
	_, ok := b.head(l, now)
	return ok
}

// Next picks the run that gets the next slot and removes it from the book. ok is false if no slot
// is free for the runs that wait.
func (b *WaitList) Next(now time.Time, s *Slots) (t Ticket, ok bool) {
	if len(b.blocked) > 2*len(b.tickets)+keptBlocks { // of lanes that are empty now
		maps.DeleteFunc(b.blocked, func(_ laneKey, until time.Time) bool { return !until.After(now) })
	}
	lines := make([]*line, 0, len(b.tenants))
	for _, l := range b.tenants {
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(x, y *line) int {
		return cmp.Or(cmp.Compare(s.load(x.tenant), s.load(y.tenant)), cmp.Compare(x.served, y.served), strings.Compare(x.tenant, y.tenant))
	})
	for _, l := range lines {
		if !s.Fits(l.tenant) {
			continue
		}
		if t, ok := b.head(l, now); ok {
			b.served++
			l.served = b.served
			b.Remove(t.ID)
			return t, true
		}
	}
	return Ticket{}, false
}

// head is the tenant's run to serve next.
func (b *WaitList) head(l *line, now time.Time) (best Ticket, ok bool) {
	for k, q := range l.queues {
		if b.isBlocked(l.tenant, k.lane, now) {
			continue
		}
		at := slices.IndexFunc(q, func(t Ticket) bool { return !t.NotBefore.After(now) })
		if at < 0 {
			continue
		}
		if t := q[at]; !ok || isServedBefore(t, best, now) {
			best, ok = t, true
		}
	}
	return best, ok
}

// isServedBefore reports whether a is served before b, which is of the same tenant.
func isServedBefore(a, b Ticket, now time.Time) bool {
	return cmp.Or(cmp.Compare(agedPriority(b, now), agedPriority(a, now)), inOrder(a, b)) < 0
}

// agedPriority is the ticket's priority after its time of waiting.
func agedPriority(t Ticket, now time.Time) int { return t.Priority + int(now.Sub(t.Since)/AgeStep) }
