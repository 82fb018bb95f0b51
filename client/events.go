package client

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"waybill.dev/waybill/protocol/wire"
)

// Event is a recorded event, with its original document.
type Event struct {
	wire.Event
	Doc json.RawMessage `json:"-"`
}

// UnmarshalJSON keeps the original document.
func (e *Event) UnmarshalJSON(b []byte) error {
	err := json.Unmarshal(b, &e.Event)
	e.Doc = append(json.RawMessage(nil), b...)
	return err
}

// EventPage is one page of a run's events, and the state of the run.
type EventPage struct {
	Events []Event `json:"events"`
	// IsComplete is true if the run has ended and no event follows.
	IsComplete   bool        `json:"isComplete"`
	IsTerminal   bool        `json:"isTerminal"`
	LastEventSeq int         `json:"lastEventSeq"`
	RunStatus    wire.Status `json:"runStatus"`
}

// EventQuery selects events from a sequence on.
type EventQuery struct {
	From  int
	Limit int
	// Wait is how long the host waits for events of a live run if there are none, in whole seconds
	// from 1 to 60.
	Wait time.Duration
}

// EventPageSize is the host's default number of events per page (OpenWOP host contract §4.7).
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
