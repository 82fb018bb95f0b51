package schedule

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// AgeStep is the waiting time that raises a run's priority by one.
const AgeStep = 30 * time.Second

// keptBlocks is the number of blocks above which expired ones are dropped.
const keptBlocks = 1024

// Ticket is a run that waits for a slot.
type Ticket struct {
	// ID is unique among tickets.
	ID     string
	Tenant string
	// Lane identifies the limits of the run; empty means none. Runs of one lane wait in line.
	Lane     string
	Priority int
	// Order is the run's position in its lane: the lowest is first.
	Order uint64
	// Since is when the run began to wait, NotBefore when it may start at the earliest.
	Since, NotBefore time.Time
}

// WaitList has the waiting runs that a dispatcher may pick. It is not safe for concurrent use.
type WaitList struct {
	tickets map[string]Ticket
	tenants map[string]*line
	// blocked is the time until which the runs of a lane are blocked.
	blocked map[laneKey]time.Time
	served  uint64
}

type laneKey struct{ tenant, lane string }

// line is the waiting runs of one tenant.
type line struct {
	tenant string
	queues map[queueKey][]Ticket // each sorted by Order; none is empty
	// served is the number of the tenant's last pick.
	served uint64
}

type queueKey struct {
	lane     string
	priority int
}

// NewWaitList returns an empty list.
func NewWaitList() *WaitList {
	return &WaitList{tickets: map[string]Ticket{}, tenants: map[string]*line{}, blocked: map[laneKey]time.Time{}}
}

// Len is the number of waiting runs.
func (w *WaitList) Len() int { return len(w.tickets) }

// Put adds a ticket, or replaces the one of the same ID.
func (w *WaitList) Put(t Ticket) {
	w.Remove(t.ID)
	w.tickets[t.ID] = t
	l := w.tenants[t.Tenant]
	if l == nil {
		l = &line{tenant: t.Tenant, queues: map[queueKey][]Ticket{}}
		w.tenants[t.Tenant] = l
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
func (w *WaitList) Remove(id string) {
	t, ok := w.tickets[id]
	if !ok {
		return
	}
	delete(w.tickets, id)
	l, k := w.tenants[t.Tenant], queueKey{t.Lane, t.Priority}
	q := l.queues[k]
	if at, found := slices.BinarySearchFunc(q, t, inOrder); found {
		if at == 0 {
			q = q[1:] // the usual case, without a copy
		} else {
			q = slices.Delete(q, at, at+1)
		}
	}
	if len(q) > 0 {
		l.queues[k] = q
		return
	}
	if delete(l.queues, k); len(l.queues) == 0 {
		delete(w.tenants, t.Tenant)
	}
}

// Block keeps the runs of a lane waiting until an instant, or until Unblock.
func (w *WaitList) Block(tenant, lane string, until time.Time) {
	w.blocked[laneKey{tenant, lane}] = until
}

// Unblock ends the block of all lanes whose name contains part.
func (w *WaitList) Unblock(part string) {
	for k := range w.blocked {
		if strings.Contains(k.lane, part) {
			delete(w.blocked, k)
		}
	}
}

// UnblockTenant ends the blocks of all lanes of a tenant.
func (w *WaitList) UnblockTenant(tenant string) {
	for k := range w.blocked {
		if k.tenant == tenant {
			delete(w.blocked, k)
		}
	}
}

// Has reports whether runs of the tenant wait.
func (w *WaitList) Has(tenant string) bool { return w.tenants[tenant] != nil }

// isBlocked reports whether a lane is blocked, and forgets a block that has ended.
func (w *WaitList) isBlocked(tenant, lane string, now time.Time) bool {
	k := laneKey{tenant, lane}
	until, ok := w.blocked[k]
	if ok && !until.After(now) {
		delete(w.blocked, k)
		return false
	}
	return ok
}

// HasWaiting reports whether runs of the lane wait: a new one must wait behind them.
func (w *WaitList) HasWaiting(tenant, lane string) bool {
	if l := w.tenants[tenant]; l != nil {
		for k := range l.queues {
			if k.lane == lane {
				return true
			}
		}
	}
	return false
}

// Ready reports whether a run of the tenant waits for a slot only.
func (w *WaitList) Ready(tenant string, now time.Time) bool {
	l := w.tenants[tenant]
	if l == nil {
		return false
	}
	_, ok := w.head(l, now)
	return ok
}

// Next picks the run for the next slot and removes it from the list. ok is false if no waiting run
// may have a slot.
func (w *WaitList) Next(now time.Time, s *Slots) (t Ticket, ok bool) {
	if len(w.blocked) > 2*len(w.tickets)+keptBlocks { // of empty lanes
		maps.DeleteFunc(w.blocked, func(_ laneKey, until time.Time) bool { return !until.After(now) })
	}
	lines := make([]*line, 0, len(w.tenants))
	for _, l := range w.tenants {
		lines = append(lines, l)
	}
	slices.SortFunc(lines, func(x, y *line) int {
		return cmp.Or(cmp.Compare(s.load(x.tenant), s.load(y.tenant)), cmp.Compare(x.served, y.served), strings.Compare(x.tenant, y.tenant))
	})
	for _, l := range lines {
		if !s.Fits(l.tenant) {
			continue
		}
		if t, ok := w.head(l, now); ok {
			w.served++
			l.served = w.served
			w.Remove(t.ID)
			return t, true
		}
	}
	return Ticket{}, false
}

// head is the tenant's next run.
func (w *WaitList) head(l *line, now time.Time) (best Ticket, ok bool) {
	for k, q := range l.queues {
		if w.isBlocked(l.tenant, k.lane, now) {
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

// isServedBefore reports whether a is served before b, of the same tenant.
func isServedBefore(a, b Ticket, now time.Time) bool {
	return cmp.Or(cmp.Compare(agedPriority(b, now), agedPriority(a, now)), inOrder(a, b)) < 0
}

// agedPriority is the ticket's priority after its waiting time.
func agedPriority(t Ticket, now time.Time) int { return t.Priority + int(now.Sub(t.Since)/AgeStep) }
