package queue

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Tenant is what holds for a tenant.
type Tenant struct {
	Weight, Priority int
	// Concurrency and Rate are limits over all workflows; 0: none.
	Concurrency int
	Rate        int
	Period      time.Duration
}

// permitLimit is a concurrency limit, rateLimit one of starts; id is a part of keys.
type permitLimit struct {
	id  string
	max int
}

type rateLimit struct {
	id     string
	max    int
	period time.Duration
}

// limits are those that a run is subject to.
type limits struct {
	priority int
	permits  []permitLimit
	rates    []rateLimit
}

// limitsOf are the limits of a run; those of rate count starts only.
func limitsOf(r subject.Run, kind subject.Kind, charged bool, s *wire.Schedule, t Tenant) limits {
	out := limits{priority: t.Priority}
	starts := kind == subject.Start && !charged
	if t.Concurrency > 0 {
		out.permits = append(out.permits, permitLimit{limitID(r.Tenant), t.Concurrency})
	}
	if t.Rate > 0 && starts {
		out.rates = append(out.rates, rateLimit{limitID(r.Tenant), t.Rate, t.Period})
	}
	if s == nil {
		return out
	}
	if s.Priority != nil {
		out.priority = *s.Priority
	}
	if c := s.Concurrency; c != nil {
		out.permits = append(out.permits, permitLimit{limitID(r.Tenant, r.WorkflowID, c.Key), c.Limit})
	}
	if l := s.Rate; l != nil && starts {
		out.rates = append(out.rates, rateLimit{limitID(r.Tenant, r.WorkflowID, l.Key), l.Limit, time.Duration(l.PeriodMs) * time.Millisecond})
	}
	return out
}

// limitID names a limit: a digest, since keys may be short, and names long.
func limitID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:12])
}

// isEmpty reports that nothing limits the run.
func (l limits) isEmpty() bool { return len(l.permits) == 0 && len(l.rates) == 0 }

// lane names the limits together: runs of one lane wait for the same.
func (l limits) lane() string {
	var b strings.Builder
	for _, p := range l.permits {
		b.WriteString("c" + p.id + "|")
	}
	for _, r := range l.rates {
		b.WriteString("r" + r.id + "|")
	}
	return b.String()
}
