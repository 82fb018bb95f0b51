package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/protocol/fault"
)

// probe is a host that is looked at, with a credential and without.
type probe struct {
	open, keyed *client.Client
	hasKey      bool
	discovery   *client.Answer
	offer       offer
	run         *run // nil: none was asked for
}

const wellKnown = "/.well-known/openwop"

// meet finds out whether a host is there, and whether it lets us in.
func (p *probe) meet(ctx context.Context) error {
	var err error
	if p.discovery, err = p.open.Capabilities(ctx); err != nil {
		return err
	}
	_ = json.Unmarshal(p.discovery.Body, &p.offer) // what does not fit, the schema tells
	if !p.hasKey {
		return nil
	}
	_, err = p.keyed.Run(ctx, unknownRun())
	if e, ok := errors.AsType[*client.Error](err); ok && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden) {
		return err
	}
	return nil
}

// unknownRun is the id of a run that no host has.
func unknownRun() string { return "run_" + strings.ReplaceAll(uuid.NewString(), "-", "") }

// get asks for a document.
func get(ctx context.Context, c *client.Client, path string, query url.Values, header ...string) (*client.Answer, error) {
	return c.Exchange(ctx, client.Exchange{Method: http.MethodGet, Path: path, Query: query, Header: headers(header)})
}

func headers(pairs []string) http.Header {
	h := http.Header{}
	for i := 0; i+1 < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// answered wants a status, and a type of content; empty: any.
func (f *findings) answered(what string, a *client.Answer, status int, contentType string) bool {
	if a.Status != status {
		f.add("%s: HTTP %d, not %d", what, a.Status, status)
		return false
	}
	if got := a.Header.Get("Content-Type"); contentType != "" && !isType(got, contentType) {
		f.add("%s: Content-Type is %q, not %s", what, got, contentType)
		return false
	}
	return true
}

func isType(got, want string) bool {
	media, _, err := mime.ParseMediaType(got)
	return err == nil && media == want
}

// refused wants a refusal with one of some codes, in the form that all have (OpenWOP host
// contract §9.1).
func (f *findings) refused(what string, a *client.Answer, status int, codes ...fault.Code) {
	if !f.answered(what, a, status, "application/json") {
		return
	}
	if wrong := envelope(a.Body); wrong != "" {
		f.add("%s: its error is not {error, message, details?}: %s", what, wrong)
		return
	}
	e, err := fault.ParseEnvelope(a.Body)
	if err != nil {
		f.add("%s: %v", what, err)
		return
	}
	if len(codes) > 0 && !slices.Contains(codes, e.Code) {
		f.add("%s: its code is %q, not %q", what, e.Code, codes[0])
	}
}

// envelope says what is wrong with the form of an error; empty: nothing.
func envelope(doc []byte) string {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(doc, &members); err != nil {
		return "it is no JSON object"
	}
	for name, value := range members {
		var text string
		var details map[string]json.RawMessage
		switch name {
		case "error", "message":
			if json.Unmarshal(value, &text) != nil || text == "" {
				return name + " is no text, or empty"
			}
		case "details":
			if json.Unmarshal(value, &details) != nil || details == nil {
				return "details is no object"
			}
		default:
			return "it has a member besides them"
		}
	}
	if members["error"] == nil || members["message"] == nil {
		return "error or message is missing"
	}
	return ""
}

// run is the one that was started.
type run struct {
	id       string
	key      string
	body     client.StartRun
	first    *client.Answer // of the start
	events   []client.Event
	unread   error // why the events cannot be polled; nil: they can
	terminal bool
}

// path is where the run is, and what is below it.
func (r *run) path(below string) string { return "/v1/runs/" + url.PathEscape(r.id) + below }

// start starts the run. A refusal is no fault of the host: the command cannot go on.
func (p *probe) start(ctx context.Context, workflow string, inputs json.RawMessage) error {
	r := &run{key: uuid.NewString(), body: client.StartRun{WorkflowID: workflow, Inputs: inputs}}
	a, err := p.post(ctx, r.key, r.body)
	if err != nil {
		return err
	}
	if a.Status >= http.StatusBadRequest {
		if f, err := fault.ParseEnvelope(a.Body); err == nil {
			return &client.Error{Status: a.Status, Fault: f}
		}
	}
	var began client.Started
	if err := json.Unmarshal(a.Body, &began); err != nil || began.RunID == "" {
		return &client.ForeignError{URL: p.keyed.Base() + "/v1/runs", Status: a.Status, Reason: "its answer names no run"}
	}
	r.id, r.first, p.run = began.RunID, a, r
	return nil
}

func (p *probe) post(ctx context.Context, key string, body client.StartRun) (*client.Answer, error) {
	return p.keyed.Exchange(ctx, client.Exchange{
		Method: http.MethodPost, Path: "/v1/runs", Body: body, Header: headers([]string{"Idempotency-Key", key}),
	})
}

// pollWait is how long a poll waits for news.
const pollWait = 10 * time.Second

// await reads the events of the run until it ends, waits for somebody, or most has passed.
func (p *probe) await(ctx context.Context, most time.Duration) error {
	r := p.run
	within, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		page, err := p.keyed.Events(within, r.id, client.EventQuery{From: len(r.events), Wait: min(pollWait, most)})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case within.Err() != nil:
			return nil
		case errors.Is(err, client.ErrUnreachable):
			return err
		case err != nil:
			r.unread = err
			return nil
		}
		for _, e := range page.Events {
			if e.Sequence != len(r.events) {
				r.unread = fmt.Errorf("a poll for the events from %d on has one of sequence %d there", len(r.events), e.Sequence)
				return nil
			}
			r.events = append(r.events, e)
		}
		if page.IsComplete || page.RunStatus.Waiting() && len(page.Events) == 0 {
			r.terminal = page.IsComplete
			return nil
		}
	}
}

// started gives the run, or says why there is none.
func (p *probe) started() (*run, error) {
	if p.run == nil {
		return nil, skipped("it takes a run: name a workflow with --workflow")
	}
	return p.run, nil
}

// ended gives the run with all its events, or says why there is none.
func (p *probe) ended() (*run, error) {
	r, err := p.started()
	switch {
	case err != nil:
		return nil, err
	case r.unread != nil:
		return nil, unpolled
	case !r.terminal:
		return nil, skipped("the run has not ended: name a workflow that does, or wait longer with --for")
	}
	return r, nil
}
