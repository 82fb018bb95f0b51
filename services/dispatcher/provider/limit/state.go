package limit

import (
	"slices"
	"strings"
	"time"
)

// State is what a dispatcher knows of a provider, for operators.
type State struct {
	Provider string
	// InFlight and Waiting are calls of this dispatcher.
	InFlight, Waiting int
	// Held is the number of pairs of model and credential that are not called before HeldUntil, the
	// latest end of them.
	Held      int
	HeldUntil time.Time
	// Settings are the operator's limits for all dispatchers; 0 means no limit.
	MaxConcurrent, RequestsPerMinute, TokensPerMinute int
	// LastErrorCode and LastErrorAt describe the last failed call of this dispatcher; empty for none.
	LastErrorCode   string
	LastErrorStatus int
	LastErrorAt     time.Time
	// LastSuccessAt is when the last call succeeded.
	LastSuccessAt time.Time
}

// States returns the states of the providers that were called, and of those in ids.
func (l *Limiter) States(ids []string) []State {
	for _, id := range ids {
		l.queue(id)
	}
	l.mu.Lock()
	queues := make([]*queue, 0, len(l.queues))
	for _, q := range l.queues {
		queues = append(queues, q)
	}
	l.mu.Unlock()
	out := make([]State, len(queues))
	for i, q := range queues {
		out[i] = q.state()
	}
	slices.SortFunc(out, func(a, b State) int { return strings.Compare(a.Provider, b.Provider) })
	return out
}

func (q *queue) state() State {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.last
	s.Provider, s.InFlight = q.provider, q.inFlight
	s.MaxConcurrent, s.RequestsPerMinute, s.TokensPerMinute = q.settings.MaxConcurrent, q.settings.RequestsPerMinute, q.settings.TokensPerMinute
	for _, list := range q.waiting {
		s.Waiting += len(list)
	}
	for _, h := range q.holds {
		s.Waiting += len(h.parked)
		if h.phase != closed {
			continue
		}
		s.Held++
		if h.wake.After(s.HeldUntil) {
			s.HeldUntil = h.wake
		}
	}
	return s
}

// remember keeps how the last call ended. The caller holds the lock.
func (q *queue) remember(o Outcome) {
	switch {
	case o.Failed != nil:
		q.last.LastErrorCode, q.last.LastErrorStatus, q.last.LastErrorAt = o.Failed.Code, o.Failed.Status, q.clock()
	case !o.Aborted:
		q.last.LastSuccessAt = q.clock()
	}
}
