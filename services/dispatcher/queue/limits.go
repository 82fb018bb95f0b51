package queue

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Tenant is the settings of a tenant.
type Tenant struct {
	Weight, Priority int
	// Concurrency and Rate are limits over all workflows; 0 means no limit.
	Concurrency int
	Rate        int
	Period      time.Duration
}

// permitLimit is a concurrency limit, rateLimit a limit of starts; id is part of keys.
type permitLimit struct {
	id  string
	max int
}

type rateLimit struct {
	id     string
	max    int
	period time.Duration
}

// limits are the limits of a run.
type limits struct {
	priority int
	permits  []permitLimit
	rates    []rateLimit
}

// limitsOf returns the limits of a run; rate limits count starts only.
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
		out.rates = append(out.rates, rateLimit{
			limitID(r.Tenant, r.WorkflowID, l.Key), l.Limit,
			time.Duration(l.PeriodMs) * time.Millisecond,
		})
	}
	return out
}

// limitID identifies a limit by a digest, because keys are short and names may be long.
func limitID(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:12])
}

// isEmpty reports that the run has no limits.
func (l limits) isEmpty() bool { return len(l.permits) == 0 && len(l.rates) == 0 }

// lane identifies the limits together: runs of one lane wait for the same limits.
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
