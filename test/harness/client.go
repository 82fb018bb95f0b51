package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Client calls the REST API as users do.
type Client struct {
	Base, Key string
	HTTP      *http.Client
	schemas   *Schemas // nil means answers are not checked
}

// Client returns a client with a key.
func (h *Host) Client(key string) *Client {
	return &Client{Base: h.HTTP, Key: key, HTTP: &http.Client{Timeout: 90 * time.Second}}
}

// Answer is a whole response.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// JSON reads the body into v.
func (a *Answer) JSON(v any) error {
	if err := json.Unmarshal(a.Body, v); err != nil {
		return fmt.Errorf("%w in %d %s", err, a.Status, a.Body)
	}
	return nil
}

// Code is the error code of a failed answer.
func (a *Answer) Code() string {
	var e struct{ Error string }
	_ = json.Unmarshal(a.Body, &e)
	return e.Error
}

// Do sends a request; headers come in pairs.
func (c *Client) Do(ctx context.Context, method, path, body string, headers ...string) (*Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	a := &Answer{Status: res.StatusCode, Header: res.Header, Body: b}
	if err := c.check(method, path, a); err != nil {
		return a, err
	}
	return a, c.checkRequest(method, path, body, req.Header, a)
}

// Event is a recorded event with its raw bytes.
type Event struct {
	EventID  string          `json:"eventId"`
	RunID    string          `json:"runId"`
	Sequence int             `json:"sequence"`
	Type     string          `json:"type"`
	NodeID   string          `json:"nodeId"`
	Payload  json.RawMessage `json:"payload"`
	Raw      json.RawMessage `json:"-"`
}

// Page is the answer to a poll.
type Page struct {
	RunID        string            `json:"runId"`
	Events       []json.RawMessage `json:"events"`
	IsComplete   bool              `json:"isComplete"`
	IsTerminal   bool              `json:"isTerminal"`
	LastEventSeq int               `json:"lastEventSeq"`
	RunStatus    string            `json:"runStatus"`
}

// Finish polls a run to its end and returns its events.
func (c *Client) Finish(ctx context.Context, runID string) ([]Event, error) {
	var all []Event
	for last := -1; ; {
		a, err := c.Do(ctx, http.MethodGet, "/v1/runs/"+runID+"/events/poll?timeout=5&lastSequence="+strconv.Itoa(last), "")
		if err != nil {
			return all, err
		}
		if a.Status != http.StatusOK {
			return all, fmt.Errorf("poll %s: %d %s", runID, a.Status, a.Body)
		}
		var p Page
		if err := a.JSON(&p); err != nil {
			return all, err
		}
		events, err := ParseEvents(p.Events)
		if err != nil {
			return all, err
		}
		all, last = append(all, events...), p.LastEventSeq
		if p.IsComplete {
			return all, nil
		}
	}
}

// ParseEvents reads event documents.
func ParseEvents(docs []json.RawMessage) ([]Event, error) {
	out := make([]Event, len(docs))
	for i, d := range docs {
		if err := json.Unmarshal(d, &out[i]); err != nil {
			return nil, err
		}
		out[i].Raw = d
	}
	return out, nil
}

// Frame is one server-sent event; a comment has only Comment.
type Frame struct {
	ID, Event, Data, Comment string
}

// Stream reads server-sent events until the server ends the stream, or each
// returns false.
func (c *Client) Stream(ctx context.Context, path string, each func(Frame) bool, headers ...string) (*Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Base+path, nil)
	if err != nil {
		return nil, err
	}
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	a := &Answer{Status: res.StatusCode, Header: res.Header}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		if a.Body, err = io.ReadAll(res.Body); err != nil {
			return nil, err
		}
		return a, c.check(http.MethodGet, path, a)
	}
	d, invalid := c.description()
	if d != nil && invalid == nil {
		invalid = d.head(http.MethodGet, path, a)
	}
	err = readFrames(res.Body, func(f Frame) bool {
		if d != nil && invalid == nil {
			invalid = d.Frame(f)
		}
		if c.schemas != nil && invalid == nil {
			invalid = c.schemas.Frame(f)
		}
		return invalid == nil && each(f)
	})
	return a, errors.Join(err, invalid)
}

func readFrames(r io.Reader, each func(Frame) bool) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 16<<20)
	var f Frame
	for s.Scan() {
		line := s.Bytes()
		name, value, _ := bytes.Cut(line, []byte(": "))
		switch {
		case len(line) == 0:
			if f != (Frame{}) && !each(f) {
				return nil
			}
			f = Frame{}
		case line[0] == ':':
			f.Comment = string(line[1:])
		case string(name) == "id":
			f.ID = string(value)
		case string(name) == "event":
			f.Event = string(value)
		case string(name) == "data":
			f.Data = string(value)
		}
	}
	return s.Err()
}
