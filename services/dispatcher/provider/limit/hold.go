package limit

import (
	"crypto/sha256"
	"slices"
	"time"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// After a provider refuses a call for its rate, or names a time to retry, calls with the same model
// and credential are held. After that time one call is a probe. The others follow if it was not
// refused.
const (
	// maxHold is the longest wait accepted from a vendor.
	maxHold = 15 * time.Minute
	// maxHoldJitter is the longest random time added to a hold, so that dispatchers do not probe
	// together.
	maxHoldJitter = 5 * time.Second
	// firstHold is the hold if the vendor names no time. It doubles up to maxHeldWait with each
	// refused probe.
	firstHold = time.Second
	// maxHeldWait is the longest wait for the end of holds. A call with a longer wait ahead is
	// rejected, so that its run does not keep a slot. An impatient call is rejected at once.
	maxHeldWait = 10 * time.Second
	// probeTime is how long other calls wait for the outcome of a probe. Refusals are fast; an
	// answer may take many minutes.
	probeTime = 5 * time.Second
	// probeKept is how long after a hold the first call is still a probe: rejected calls return
	// within a window of 2 minutes.
	probeKept = 2*time.Minute + maxHoldJitter
)

// key identifies calls that share a vendor's limits.
type key struct {
	model string
	// credential is the digest of a tenant's own key; empty for the host's key.
	credential string
}

func keyOf(c Call) key {
	k := key{model: c.Model}
	if c.Credential != "" {
		sum := sha256.Sum256([]byte(c.Credential))
		k.credential = string(sum[:])
	}
	return k
}

// HeldError rejects a held call. The call was not made.
type HeldError struct {
	// Code is the code of the refusal.
	Code string
	// Left is the time until the provider is called again.
	Left time.Duration
}

// Error does not name the provider, which may be hidden from the run's readers.
func (*HeldError) Error() string {
	return "the provider refused an earlier call for lack of capacity; no call is made before the time that it named"
}

type phase int

const (
	// closed makes no call before wake.
	closed phase = iota
	// due makes the next call the probe.
	due
	// probing has a probe that waits for room or is in flight.
	probing
)

// hold is the state of one key's held calls. The queue's lock guards it.
type hold struct {
	key   key
	phase phase
	code  string
	// refusals counts refused probes, the first refusal included.
	refusals int
	probe    *waiter
	// parked are the calls that wait for the end of the hold, in order.
	parked []*waiter
	// wake is when the phase ends by itself; zero for never.
	wake  time.Time
	timer *time.Timer
}

// parkIfHeld parks a held call or rejects it; the caller then removes it from the queue. False
// means that the call can be made.
func (q *queue) parkIfHeld(w *waiter) bool {
	h := q.holds[w.key]
	switch {
	case h == nil || h.probe == w:
		return false
	case h.phase == due:
		q.sendProbe(h, w)
		return false
	case h.phase == closed && h.wake.Sub(q.clock()) > w.patience:
		q.reject(h, w)
	default:
		if w.since.IsZero() {
			w.since = q.clock()
		}
		w.parked = true
		h.parked = append(h.parked, w)
	}
	return true
}

func (q *queue) reject(h *hold, w *waiter) {
	w.held = &HeldError{Code: h.code, Left: h.wake.Sub(q.clock())}
	close(w.done)
}

func (q *queue) sendProbe(h *hold, w *waiter) {
	h.phase, h.probe = probing, w
	q.setTimer(h, 0) // probeTime starts with its call
}

// startHold starts or extends the hold of w's key.
func (q *queue) startHold(w *waiter, e *provider.Error) {
	h := q.holds[w.key]
	if h == nil {
		h = &hold{key: w.key, phase: due}
		q.holds[w.key] = h
	}
	var until time.Time // the end of the current hold
	if h.phase == closed {
		until = h.wake
	} else {
		h.refusals++
	}
	h.phase, h.probe, h.code = closed, nil, e.Code
	if d := q.holdFor(h, e); q.clock().Add(d).After(until) {
		q.setTimer(h, d)
	}
	h.parked = slices.DeleteFunc(h.parked, func(w *waiter) bool {
		away := h.wake.Sub(w.since) > w.patience
		if away {
			w.parked = false
			q.reject(h, w)
		}
		return away
	})
}

// holdFor returns the duration of a hold after a refusal.
func (q *queue) holdFor(h *hold, e *provider.Error) time.Duration {
	if e.RetryAfter > 0 {
		d := min(e.RetryAfter, maxHold)
		return d + q.jitter(min(d/10, maxHoldJitter)+time.Millisecond)
	}
	d := min(firstHold<<min(h.refusals-1, 10), maxHeldWait) / 2
	return d + q.jitter(d)
}

// setTimer ends the current phase in d; 0 disables the timer.
func (q *queue) setTimer(h *hold, d time.Duration) {
	if h.timer != nil {
		h.timer.Stop()
	}
	h.wake = time.Time{}
	if d <= 0 {
		return
	}
	h.wake = q.clock().Add(d)
	h.timer = time.AfterFunc(d, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		switch left := h.wake.Sub(q.clock()); {
		case h.wake.IsZero() || q.holds[h.key] != h: // the timer was stopped too late
		case left > 0:
			q.setTimer(h, left)
		default:
			q.endPhase(h)
		}
	})
}

// endPhase ends a phase whose time is over.
func (q *queue) endPhase(h *hold) {
	switch h.phase {
	case closed:
		q.nextProbe(h)
	case due, probing:
		q.liftHold(h)
	}
	q.admitWaiting()
}

// nextProbe admits the first parked call, or the next call that arrives, as a probe.
func (q *queue) nextProbe(h *hold) {
	h.phase, h.probe = due, nil
	if len(h.parked) == 0 {
		q.setTimer(h, probeKept)
		return
	}
	w := h.parked[0]
	h.parked = h.parked[1:]
	q.sendProbe(h, w)
	q.requeue([]*waiter{w})
}

// liftHold ends a hold. Its calls return to the queue before those that came later.
func (q *queue) liftHold(h *hold) {
	delete(q.holds, h.key)
	q.setTimer(h, 0)
	q.requeue(h.parked)
	h.parked = nil
}

func (q *queue) requeue(list []*waiter) {
	front, turns := map[string][]*waiter{}, []string{}
	for _, w := range list {
		w.parked = false
		if len(front[w.tenant]) == 0 && len(q.waiting[w.tenant]) == 0 {
			turns = append(turns, w.tenant)
		}
		front[w.tenant] = append(front[w.tenant], w)
	}
	q.turns = append(turns, q.turns...)
	for tenant, list := range front {
		q.waiting[tenant] = append(list, q.waiting[tenant]...)
	}
}

// settleHold applies the outcome of a call to the hold of its key.
func (q *queue) settleHold(w *waiter, o Outcome) {
	h := q.holds[w.key]
	isProbe := h != nil && h.probe == w
	switch {
	case o.Refused != nil:
		// A single overload or failed connection without a retry time starts no hold.
		if isProbe || o.Refused.RetryAfter > 0 || o.Refused.Code == provider.CodeQuota {
			q.startHold(w, o.Refused)
		}
	case !isProbe:
	case o.Aborted:
		q.nextProbe(h)
	default:
		q.liftHold(h)
	}
}

// leaveHold removes a cancelled call from its hold.
func (q *queue) leaveHold(w *waiter) {
	h := q.holds[w.key]
	if h == nil {
		return
	}
	h.parked = slices.DeleteFunc(h.parked, func(o *waiter) bool { return o == w })
	if h.probe == w {
		q.nextProbe(h)
	}
}
