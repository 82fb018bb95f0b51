package client

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"waybill.dev/waybill/protocol/wire"
)

// Event is a recorded event, with the document that it came in.
type Event struct {
	wire.Event
	Doc json.RawMessage `json:"-"`
}

// UnmarshalJSON keeps the event as it came.
func (e *Event) UnmarshalJSON(b []byte) error {
	err := json.Unmarshal(b, &e.Event)
	e.Doc = append(json.RawMessage(nil), b...)
	return err
}

// EventPage is one page of a run's events, and where the run stands.
type EventPage struct {
	Events []Event `json:"events"`
	// IsComplete: the run has ended, and no event follows.
	IsComplete   bool        `json:"isComplete"`
	IsTerminal   bool        `json:"isTerminal"`
	LastEventSeq int         `json:"lastEventSeq"`
	RunStatus    wire.Status `json:"runStatus"`
}

// EventQuery asks for events from a sequence on.
type EventQuery struct {
	From  int
	Limit int
	// Wait is how long the host waits for news where there are none and the run goes
	// on, in whole seconds from 1 to 60.
	Wait time.Duration
}

// EventPageSize is how many events a host gives at a time unless told (OpenWOP host
// contract §4.7).
const EventPageSize = 1000

// Events reads a page of a run's events.
func (c *Client) Events(ctx context.Context, runID string, q EventQuery) (*EventPage, error) {
	q.Wait = min(max(q.Wait, time.Second), time.Minute)
	out := &EventPage{}
	_, err := c.into(ctx, request{
		method: http.MethodGet, path: runPath(runID) + "/events/poll", wait: q.Wait,
		query: values("lastSequence", strconv.Itoa(q.From-1), "limit", number(q.Limit), "timeout", strconv.Itoa(int(q.Wait.Seconds()))),
	}, out)
	return out, err
}
