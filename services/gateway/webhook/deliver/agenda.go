package deliver

import (
	"container/heap"
	"time"

	"waybill.dev/waybill/services/gateway/webhook/outbox"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// Limits bound the deliveries under way in one process.
type Limits struct{ Total, PerTenant, PerWebhook int }

// hook names a subscription.
type hook struct{ tenant, webhook string }

func hookOf(id outbox.ID) hook { return hook{id.Tenant, id.Webhook} }

// agenda knows every lane and says which one to work on next. It is not safe for
// concurrent use.
type agenda struct {
	limits Limits
	// lookup gives the state of a subscription; nil: it is gone.
	lookup func(tenant, webhook string) *subscription.Entry

	due   map[outbox.ID]time.Time // every lane that is there
	times timers                  // when lanes become ready; some entries are out of date
	ready map[hook]*queue         // lanes that could go on, first come first served
	busy  map[outbox.ID]bool      // lanes worked on here
	heard map[outbox.ID]bool      // those of them of which the outbox has told since
	hooks map[hook]int            // how many of them, by subscription
	per   map[string]int          // and by tenant
}

// queue is the ready lanes of one subscription.
type queue struct {
	order  []outbox.ID
	queued map[outbox.ID]bool
}

func newAgenda(l Limits, lookup func(tenant, webhook string) *subscription.Entry) *agenda {
	return &agenda{
		limits: l, lookup: lookup, due: map[outbox.ID]time.Time{}, ready: map[hook]*queue{},
		busy: map[outbox.ID]bool{}, heard: map[outbox.ID]bool{}, hooks: map[hook]int{}, per: map[string]int{},
	}
}

// set notes when a lane may go on.
func (a *agenda) set(id outbox.ID, due time.Time) {
	a.due[id] = due
	if a.busy[id] {
		a.heard[id] = true
		return
	}
	heap.Push(&a.times, timer{due, id})
}

// remove forgets a lane.
func (a *agenda) remove(id outbox.ID) {
	delete(a.due, id)
	delete(a.heard, id)
}

// end forgets a lane that whoever worked on it has put away, unless the outbox has told of
// it meanwhile: it may be there again, with something new. If it is not, the outbox tells
// that as well.
func (a *agenda) end(id outbox.ID) {
	if !a.heard[id] {
		a.remove(id)
	}
}

// wait notes when whoever worked on a lane would go on with it, unless the outbox has told
// of something sooner meanwhile.
func (a *agenda) wait(id outbox.ID, due time.Time) {
	if told, there := a.due[id]; a.heard[id] && there && told.Before(due) {
		return
	}
	a.due[id] = due
}

// done ends the work on a lane here.
func (a *agenda) done(id outbox.ID) {
	delete(a.busy, id)
	delete(a.heard, id)
	if a.hooks[hookOf(id)]--; a.hooks[hookOf(id)] == 0 {
		delete(a.hooks, hookOf(id))
	}
	if a.per[id.Tenant]--; a.per[id.Tenant] == 0 {
		delete(a.per, id.Tenant)
	}
	if due, ok := a.due[id]; ok {
		heap.Push(&a.times, timer{due, id})
	}
}

// take gives a lane to work on now; false: there is none.
func (a *agenda) take(now time.Time) (outbox.ID, bool) {
	a.ripen(now)
	if len(a.busy) >= a.limits.Total {
		return outbox.ID{}, false
	}
	for h, q := range a.ready {
		if a.hooks[h] >= a.limits.PerWebhook || a.per[h.tenant] >= a.limits.PerTenant || a.admits(h, now).After(now) {
			continue
		}
		if id, ok := a.pop(h, q, now); ok {
			a.busy[id] = true
			a.hooks[h]++
			a.per[h.tenant]++
			return id, true
		}
	}
	return outbox.ID{}, false
}

// admits is when the breaker of a subscription lets the next lane through.
func (a *agenda) admits(h hook, now time.Time) time.Time {
	e := a.lookup(h.tenant, h.webhook)
	if e == nil {
		return time.Time{} // its lanes are put away
	}
	if e.State.Health.Condition(now) == subscription.HalfOpen && a.hooks[h] > 0 {
		return now.Add(time.Second) // the one that is tried comes back here
	}
	return e.State.Health.Admits(now)
}

// pop takes the first lane of a queue that is still there and still due.
func (a *agenda) pop(h hook, q *queue, now time.Time) (outbox.ID, bool) {
	for len(q.order) > 0 {
		id := q.order[0]
		q.order = q.order[1:]
		delete(q.queued, id)
		if len(q.order) == 0 {
			delete(a.ready, h)
		}
		if due, there := a.due[id]; there && !a.busy[id] && !due.After(now) {
			return id, true
		}
	}
	return outbox.ID{}, false
}

// ripen moves lanes whose time has come to the queues.
func (a *agenda) ripen(now time.Time) {
	for len(a.times) > 0 && !a.times[0].at.After(now) {
		id := heap.Pop(&a.times).(timer).id //nolint:forcetypeassert // only timers are pushed
		due, there := a.due[id]
		if !there || a.busy[id] || due.After(now) { // out of date
			continue
		}
		h := hookOf(id)
		q := a.ready[h]
		if q == nil {
			q = &queue{queued: map[outbox.ID]bool{}}
			a.ready[h] = q
		}
		if !q.queued[id] {
			q.queued[id] = true
			q.order = append(q.order, id)
		}
	}
}

// next is when take may find something though nothing has changed; zero: never.
func (a *agenda) next(now time.Time) time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for len(a.times) > 0 {
		id := a.times[0].id
		if due, there := a.due[id]; there && !a.busy[id] && due.Equal(a.times[0].at) {
			sooner(a.times[0].at)
			break
		}
		heap.Pop(&a.times)
	}
	for h := range a.ready {
		sooner(a.admits(h, now))
	}
	return at
}

// timer is when a lane becomes ready.
type timer struct {
	at time.Time
	id outbox.ID
}

// timers is a heap, the soonest first.
type timers []timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }

// Push is for package heap.
func (t *timers) Push(x any) { *t = append(*t, x.(timer)) } //nolint:forcetypeassert // only timers are pushed

// Pop is for package heap.
func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	*t = old[:len(old)-1]
	return last
}
