package webhook

import (
	"container/heap"
	"time"

	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// Limits limits the concurrent deliveries of one process. A tenant has no more of them than are free:
// tenants with many receivers that do not answer leave a share to the others.
type Limits struct{ Total, PerTenant, PerWebhook int }

// hookID identifies a subscription.
type hookID struct{ tenant, webhook string }

func hookOf(id laneID) hookID { return hookID{id.Tenant, id.Webhook} }

// scheduler tracks every lane and decides which one to deliver next. It is not safe for
// concurrent use.
type scheduler struct {
	limits Limits
	// lookup returns the state of a subscription; nil if it was deleted.
	lookup func(tenant, webhook string) *subscription.Entry

	due          map[laneID]time.Time // all lanes
	times        timers               // when lanes become due; some entries are outdated
	ready        map[hookID]*queue    // lanes that are due, in order of arrival
	busy         map[laneID]bool      // claimed lanes
	changed      map[laneID]bool      // claimed lanes that the outbox has reported a change of
	busyByHook   map[hookID]int       // number of claimed lanes by subscription
	busyByTenant map[string]int       // number of claimed lanes by tenant
	direct       int                  // deliveries of no lane; busyByHook and busyByTenant count them, too
}

// queue holds the ready lanes of one subscription.
type queue struct {
	order  []laneID
	queued map[laneID]bool
}

func newScheduler(l Limits, lookup func(tenant, webhook string) *subscription.Entry) *scheduler {
	return &scheduler{
		limits: l, lookup: lookup, due: map[laneID]time.Time{}, ready: map[hookID]*queue{},
		busy: map[laneID]bool{}, changed: map[laneID]bool{}, busyByHook: map[hookID]int{}, busyByTenant: map[string]int{},
	}
}

// schedule sets when a lane is due.
func (s *scheduler) schedule(id laneID, due time.Time) {
	s.due[id] = due
	if s.busy[id] {
		s.changed[id] = true
		return
	}
	heap.Push(&s.times, timer{due, id})
}

// forget removes a lane.
func (s *scheduler) forget(id laneID) {
	delete(s.due, id)
	delete(s.changed, id)
}

// forgetUnlessChanged removes a lane that its worker deleted. If the outbox reported a
// change since the claim, the lane may exist again with new frames, so it is kept; the
// outbox also reports its deletion.
func (s *scheduler) forgetUnlessChanged(id laneID) {
	if !s.changed[id] {
		s.forget(id)
	}
}

// reschedule sets when a claimed lane is due again, unless the outbox reported an earlier
// time since the claim.
func (s *scheduler) reschedule(id laneID, due time.Time) {
	if reported, exists := s.due[id]; s.changed[id] && exists && reported.Before(due) {
		return
	}
	s.due[id] = due
}

// release ends the work on a lane in this process.
func (s *scheduler) release(id laneID) {
	delete(s.busy, id)
	delete(s.changed, id)
	s.free(hookOf(id))
	if due, ok := s.due[id]; ok {
		heap.Push(&s.times, timer{due, id})
	}
}

// enter takes a slot for a delivery of no lane; false if none is free.
func (s *scheduler) enter(h hookID) bool {
	used := len(s.busy) + s.direct
	if used >= s.limits.Total || s.busyByHook[h] >= s.limits.PerWebhook || s.busyByTenant[h.tenant] >= min(s.limits.PerTenant, s.limits.Total-used) {
		return false
	}
	s.direct++
	s.busyByHook[h]++
	s.busyByTenant[h.tenant]++
	return true
}

// leave returns a slot of enter.
func (s *scheduler) leave(h hookID) {
	s.direct--
	s.free(h)
}

// free counts the end of a delivery.
func (s *scheduler) free(h hookID) {
	if s.busyByHook[h]--; s.busyByHook[h] == 0 {
		delete(s.busyByHook, h)
	}
	if s.busyByTenant[h.tenant]--; s.busyByTenant[h.tenant] == 0 {
		delete(s.busyByTenant, h.tenant)
	}
}

// claimNext returns a lane to deliver now; false if none is due.
func (s *scheduler) claimNext(now time.Time) (laneID, bool) {
	s.promoteDue(now)
	used := len(s.busy) + s.direct
	if used >= s.limits.Total {
		return laneID{}, false
	}
	share := min(s.limits.PerTenant, s.limits.Total-used)
	for h, q := range s.ready {
		if s.busyByHook[h] >= s.limits.PerWebhook || s.busyByTenant[h.tenant] >= share || s.admittedAt(h, now).After(now) {
			continue
		}
		if id, ok := s.popDue(h, q, now); ok {
			s.busy[id] = true
			s.busyByHook[h]++
			s.busyByTenant[h.tenant]++
			return id, true
		}
	}
	return laneID{}, false
}

// admittedAt returns when the breaker of a subscription admits the next lane.
func (s *scheduler) admittedAt(h hookID, now time.Time) time.Time {
	e := s.lookup(h.tenant, h.webhook)
	if e == nil {
		return time.Time{} // its lanes are deleted
	}
	if e.State.Health.Condition(now) == subscription.HalfOpen && s.busyByHook[h] > 0 {
		return now.Add(time.Second) // the running probe decides
	}
	return e.State.Health.Admits(now)
}

// popDue removes the first lane of a queue that still exists and is still due.
func (s *scheduler) popDue(h hookID, q *queue, now time.Time) (laneID, bool) {
	for len(q.order) > 0 {
		id := q.order[0]
		q.order = q.order[1:]
		delete(q.queued, id)
		if len(q.order) == 0 {
			delete(s.ready, h)
		}
		if due, there := s.due[id]; there && !s.busy[id] && !due.After(now) {
			return id, true
		}
	}
	return laneID{}, false
}

// promoteDue moves lanes that are due to the queues.
func (s *scheduler) promoteDue(now time.Time) {
	for len(s.times) > 0 && !s.times[0].at.After(now) {
		id := heap.Pop(&s.times).(timer).id //nolint:forcetypeassert // only timers are pushed
		due, there := s.due[id]
		if !there || s.busy[id] || due.After(now) { // outdated
			continue
		}
		h := hookOf(id)
		q := s.ready[h]
		if q == nil {
			q = &queue{queued: map[laneID]bool{}}
			s.ready[h] = q
		}
		if !q.queued[id] {
			q.queued[id] = true
			q.order = append(q.order, id)
		}
	}
}

// nextWake returns when claimNext may find a lane without further changes; zero means never.
func (s *scheduler) nextWake(now time.Time) time.Time {
	var at time.Time
	sooner := func(t time.Time) {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	for len(s.times) > 0 {
		id := s.times[0].id
		if due, there := s.due[id]; there && !s.busy[id] && due.Equal(s.times[0].at) {
			sooner(s.times[0].at)
			break
		}
		heap.Pop(&s.times)
	}
	for h := range s.ready {
		sooner(s.admittedAt(h, now))
	}
	return at
}

// timer is the time at which a lane is due.
type timer struct {
	at time.Time
	id laneID
}

// timers is a heap with the earliest timer first.
type timers []timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }

// Push implements heap.Interface.
func (t *timers) Push(x any) { *t = append(*t, x.(timer)) } //nolint:forcetypeassert // only timers are pushed

// Pop implements heap.Interface.
func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	*t = old[:len(old)-1]
	return last
}
