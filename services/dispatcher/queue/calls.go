package queue

import (
	"context"
	"errors"
	"time"
)

// CallLimit is a limit of the calls of a tool or an agent, of all dispatchers together.
type CallLimit struct {
	// ID identifies the limit, Name is the limit in words.
	ID   []string
	Name string
	// Concurrency limits the calls in flight, Rate those that begin within Period. One is 0.
	Concurrency, Rate int
	Period            time.Duration
}

// callLimits begins the ids of limits of calls: those of runs begin with a tenant.
const callLimits = "calls:"

// CallAdmission is the answer to a call that has limits.
type CallAdmission struct {
	// Release ends the call; nil if it is not admitted.
	Release func()
	// Limit is the index of the limit that refused the call, and Wait the time until a rate allows it;
	// 0 if another call must end first.
	Limit int
	Wait  time.Duration
}

// AdmitCall admits a call if it is within its limits. A refused call leaves no permit and counts
// against no rate. call is the same for each try of a call. The permits of a process that dies are free
// once its lease is over. Errors: kv.ErrUnavailable, that of ctx.
func (s *Scheduler) AdmitCall(ctx context.Context, runID, call string, limits []CallLimit) (CallAdmission, error) {
	var got []permit
	release := func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		for _, p := range got {
			s.permits.release(bounded, p)
		}
	}
	process := s.deps.Leases.Process()
	for i, l := range limits {
		if l.Concurrency == 0 {
			continue
		}
		p, err := s.permits.acquire(ctx, permitLimit{l.key(), l.Concurrency}, runID, process)
		if err != nil {
			release()
			if errors.Is(err, errLimited) {
				err = nil
			}
			return CallAdmission{Limit: i}, err
		}
		got = append(got, p)
	}
	// A rate counts only calls that have all permits: they begin now.
	var charged []rateLimit
	for i, l := range limits {
		if l.Rate == 0 {
			continue
		}
		r := rateLimit{l.key(), l.Rate, l.Period}
		wait, err := chargeRate(ctx, s.deps.Rates, r, call, s.deps.Clock)
		if err != nil || wait > 0 {
			for _, c := range charged {
				s.refund(ctx, c, call)
			}
			release()
			return CallAdmission{Limit: i, Wait: wait}, err
		}
		charged = append(charged, r)
	}
	return CallAdmission{Release: release}, nil
}

// key returns the part of keys that identifies the limit.
func (l CallLimit) key() string { return limitID(append([]string{callLimits}, l.ID...)...) }

// refund takes the charge of a call or a run back. If that fails, the rate allows one less in this
// period.
func (s *Scheduler) refund(ctx context.Context, l rateLimit, id string) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := refundRate(bounded, s.deps.Rates, l, id); err != nil {
		s.deps.Logger.Debug("rate of a call or a run that did not begin not reduced", "error", err)
	}
}
