package queue

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/queue/schedule"
)

// Reason is why a run waits.
type Reason string

// The reasons.
const (
	Capacity    Reason = "capacity"    // no slot is free for its tenant
	Concurrency Reason = "concurrency" // as many runs are executed as the limit allows
	Rate        Reason = "rate"        // as many runs started in the period as the limit allows
)

// Reasons returns all reasons.
func Reasons() []Reason { return []Reason{Capacity, Concurrency, Rate} }

// Names of buckets and consumers. An autoscaler counts the messages of Bucket that the consumer
// ScalingConsumer selects.
const (
	Bucket          = "waybill_waiting" // tickets and permits
	RateBucket      = "waybill_rates"   // starts of rate limits
	ScalingConsumer = "waiting"
)

// Prefixes of keys. Tickets that wait for a slot, or are executed, have another prefix than tickets
// that wait for a limit: more dispatchers help only the former.
const (
	readyPrefix   = "ready."
	limitedPrefix = "limited."
	permitPrefix  = "permit."
	ratePrefix    = "rate."
)

// ScalingSubjects match the tickets that an autoscaler counts: runs that wait for a slot, and runs
// executed from a ticket.
const ScalingSubjects = "$KV." + Bucket + "." + readyPrefix + ">"

// ticket is the stored record of a waiting run.
type ticket struct {
	Tenant     string       `json:"tenant"`
	WorkflowID string       `json:"workflowId"`
	RunID      string       `json:"runId"`
	Kind       subject.Kind `json:"kind"`
	// Pos and StoredMs are those of the frame that enqueued the run.
	Pos      uint64         `json:"pos"`
	StoredMs int64          `json:"storedMs"`
	Reason   Reason         `json:"reason"`
	Schedule *wire.Schedule `json:"schedule,omitempty"`
	// ParkedMs is when the run began to wait.
	ParkedMs int64 `json:"parkedMs"`
	// NotBeforeMs is the earliest next execution after the delivery was handed back, Tries how
	// often that happened.
	NotBeforeMs int64 `json:"notBeforeMs,omitempty"`
	Tries       int   `json:"tries,omitempty"`
	// Holder is the lease id of the process that executes the run; empty means none.
	Holder string `json:"holder,omitempty"`
	// Charged reports that the run was counted by its rate limits.
	Charged bool `json:"charged,omitempty"`
}

func newTicket(f *frame.Frame, why Reason, s *wire.Schedule, now time.Time) ticket {
	return ticket{
		Tenant:     f.Run.Tenant,
		WorkflowID: f.Run.WorkflowID,
		RunID:      f.Run.RunID,
		Kind:       f.Kind,
		Pos:        f.Pos,
		StoredMs:   f.Stored.UnixMilli(),
		Reason:     why,
		Schedule:   s,
		ParkedMs:   now.UnixMilli(),
	}
}

func (t ticket) run() subject.Run {
	return subject.Run{Tenant: t.Tenant, WorkflowID: t.WorkflowID, RunID: t.RunID}
}

// frame has the run, the kind and the position, which a delivery needs if its run is read from the
// log.
func (t ticket) frame() *frame.Frame {
	return &frame.Frame{Run: t.run(), Kind: t.Kind, Pos: t.Pos, Stored: time.UnixMilli(t.StoredMs)}
}

// key is the ticket's key below a prefix. A frame has one ticket, and a run one for each frame that
// enqueued it.
func (t ticket) key(prefix string) string {
	return prefix + t.Tenant + "." + t.RunID + "." + strconv.FormatUint(t.Pos, 10)
}

// initialKey is the key of a new ticket.
func (t ticket) initialKey() string {
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

// entry is a ticket as the watch last reported it.
type entry struct {
	ticket
	rev uint64
	// round is the last watch round that reported it.
	round int
}

// scheduleTicket is the entry for the wait list.
func (e entry) scheduleTicket(key string, l limits) schedule.Ticket {
	return schedule.Ticket{
		ID: key, Tenant: e.Tenant, Lane: l.lane(), Priority: l.priority, Order: e.order(),
		Since: time.UnixMilli(e.ParkedMs), NotBefore: time.UnixMilli(e.NotBeforeMs),
	}
}

// notStartedOffset is greater than the position of every frame.
const notStartedOffset = 1 << 62

// order sorts runs that have started, such as those of a dead dispatcher, before others.
func (e entry) order() uint64 {
	if e.Kind == subject.Wake {
		return e.Pos
	}
	return e.Pos + notStartedOffset
}
