package waiting

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/schedule"
)

// Reason is why a run waits.
type Reason string

// The reasons.
const (
	Capacity    Reason = "capacity"    // no slot is free for its tenant
	Concurrency Reason = "concurrency" // as many runs are executed as the limit allows
	Rate        Reason = "rate"        // as many runs started in the period as the limit allows
)

// Reasons are all reasons.
func Reasons() []Reason { return []Reason{Capacity, Concurrency, Rate} }

// Names of what is kept. An autoscaler counts the messages of Bucket that the consumer ScalingConsumer
// selects.
const (
	Bucket          = "waybill_waiting" // tickets, permits and processes
	RateBucket      = "waybill_rates"   // starts of rate limits
	ScalingConsumer = "waiting"
)

// Prefixes of keys. Tickets that wait for a slot, and those that are executed, are apart from
// tickets that wait for a limit: more dispatchers help the former only.
const (
	readyPrefix   = "ready."
	limitedPrefix = "limited."
	holderPrefix  = "holder."
	permitPrefix  = "permit."
	ratePrefix    = "rate."
)

// ScalingSubjects match the tickets that an autoscaler counts: runs that wait for a slot, and runs
// executed from a ticket.
const ScalingSubjects = "$KV." + Bucket + "." + readyPrefix + ">"

// ticket is what is stored of a waiting run.
type ticket struct {
	Tenant     string       `json:"tenant"`
	WorkflowID string       `json:"workflowId"`
	RunID      string       `json:"runId"`
	Kind       subject.Kind `json:"kind"`
	// Pos and StoredMs are those of the frame that handed the run out.
	Pos      uint64         `json:"pos"`
	StoredMs int64          `json:"storedMs"`
	Reason   Reason         `json:"reason"`
	Schedule *wire.Schedule `json:"schedule,omitempty"`
	// ParkedMs is when the run began to wait.
	ParkedMs int64 `json:"parkedMs"`
	// NotBeforeMs is when it may be executed again after its delivery was handed back, Tries how
	// often that happened.
	NotBeforeMs int64 `json:"notBeforeMs,omitempty"`
	Tries       int   `json:"tries,omitempty"`
	// Holder is the process that executes it; empty: none.
	Holder string `json:"holder,omitempty"`
	// Charged says that the run counts against its rate limits already.
	Charged bool `json:"charged,omitempty"`
}

func newTicket(f *frame.Frame, why Reason, s *wire.Schedule, now time.Time) ticket {
	return ticket{
		Tenant: f.Run.Tenant, WorkflowID: f.Run.WorkflowID, RunID: f.Run.RunID, Kind: f.Kind, Pos: f.Pos, StoredMs: f.Stored.UnixMilli(),
		Reason: why, Schedule: s, ParkedMs: now.UnixMilli(),
	}
}

func (t ticket) run() subject.Run {
	return subject.Run{Tenant: t.Tenant, WorkflowID: t.WorkflowID, RunID: t.RunID}
}

// frame is the run, the kind and the position: all that a delivery needs whose run is read from
// its log.
func (t ticket) frame() *frame.Frame {
	return &frame.Frame{Run: t.run(), Kind: t.Kind, Pos: t.Pos, Stored: time.UnixMilli(t.StoredMs)}
}

// key is the ticket's key below a prefix. A frame has one ticket, and a run as many as frames that
// hand it out.
func (t ticket) key(prefix string) string {
	return prefix + t.Tenant + "." + t.RunID + "." + strconv.FormatUint(t.Pos, 10)
}

// keyFor is the key of a new ticket.
func (t ticket) keyFor() string {
	if t.Reason == Capacity {
		return t.key(readyPrefix)
	}
	return t.key(limitedPrefix)
}

func (t ticket) value() ([]byte, error) {
	b, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("render ticket of run %s: %w", t.RunID, err)
	}
	return b, nil
}

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

// none reports that nothing limits the run.
func (l limits) none() bool { return len(l.permits) == 0 && len(l.rates) == 0 }

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

// entry is a ticket as the dispatcher last saw it.
type entry struct {
	ticket
	rev uint64
	// round is the watch that saw it last.
	round int
}

// listed is the entry as the book has it.
func (e entry) listed(key string, l limits) schedule.Ticket {
	return schedule.Ticket{
		ID: key, Tenant: e.Tenant, Lane: l.lane(), Priority: l.priority, Order: e.Pos,
		Since: time.UnixMilli(e.ParkedMs), NotBefore: time.UnixMilli(e.NotBeforeMs),
	}
}

// retryAfter is how long a run waits that was handed back: longer each time.
func retryAfter(first time.Duration, tries int) time.Duration {
	return cmp.Or(first, time.Second) << min(max(tries-1, 0), 3)
}
