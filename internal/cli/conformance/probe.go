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

// probe is the host under test, called with a credential (keyed) and without (open).
type probe struct {
	open, keyed *client.Client
	hasKey      bool
	discovery   *client.Answer
	offer       offer
	run         *run // nil without --workflow
}

const wellKnown = "/.well-known/openwop"

// connect reads the discovery document and checks that the host accepts the credential.
func (p *probe) connect(ctx context.Context) error {
	var err error
	if p.discovery, err = p.open.Capabilities(ctx); err != nil {
		return err
	}
	_ = json.Unmarshal(p.discovery.Body, &p.offer) // the schema check reports what does not fit
	if !p.hasKey {
		return nil
	}
	_, err = p.keyed.Run(ctx, unknownRun())
	if e, ok := errors.AsType[*client.Error](err); ok && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden) {
		return err
	}
	return nil
}

// unknownRun returns the id of a run that does not exist.
func unknownRun() string { return "run_" + strings.ReplaceAll(uuid.NewString(), "-", "") }

// get sends a GET request.
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

// answered expects a status and a content type; empty accepts any type.
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

// refused expects an error document with one of the codes (OpenWOP host contract §9.1).
func (f *findings) refused(what string, a *client.Answer, status int, codes ...fault.Code) {
	if !f.answered(what, a, status, "application/json") {
		return
	}
	if wrong := envelope(a.Body); wrong != "" {
		f.add("%s: the error is not {error, message, details?}: %s", what, wrong)
		return
	}
	e, err := fault.ParseEnvelope(a.Body)
	if err != nil {
		f.add("%s: %v", what, err)
		return
	}
	if len(codes) > 0 && !slices.Contains(codes, e.Code) {
		f.add("%s: code is %q, not %q", what, e.Code, codes[0])
	}
}

// envelope returns why a document is not a valid error; empty if it is.
func envelope(doc []byte) string {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(doc, &members); err != nil {
		return "not a JSON object"
	}
	for name, value := range members {
		var text string
		var details map[string]json.RawMessage
		switch name {
		case "error", "message":
			if json.Unmarshal(value, &text) != nil || text == "" {
				return name + " is not a string, or is empty"
			}
		case "details":
			if json.Unmarshal(value, &details) != nil || details == nil {
				return "details is not an object"
			}
		default:
			return fmt.Sprintf("unknown member %q", name)
		}
	}
	if members["error"] == nil || members["message"] == nil {
		return "error or message is missing"
	}
	return ""
}

// run is the run that the command started.
type run struct {
	id       string
	key      string
	body     client.StartRun
	first    *client.Answer // response to the start
	events   []client.Event
	unread   error // why the events cannot be polled; nil if they can
	terminal bool
}

// path is the path of the run, with below appended.
func (r *run) path(below string) string { return "/v1/runs/" + url.PathEscape(r.id) + below }

// start starts the run. If the host rejects it, the command ends: it cannot check the rest.
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
		return &client.ForeignError{URL: p.keyed.Base() + "/v1/runs", Status: a.Status, Reason: "the response has no runId"}
	}
	r.id, r.first, p.run = began.RunID, a, r
	return nil
}

func (p *probe) post(ctx context.Context, key string, body client.StartRun) (*client.Answer, error) {
	return p.keyed.Exchange(ctx, client.Exchange{
		Method: http.MethodPost, Path: "/v1/runs", Body: body, Header: headers([]string{"Idempotency-Key", key}),
	})
}

// pollWait is how long a poll waits for events.
const pollWait = 10 * time.Second

// await reads the events of the run until it ends, waits for an answer, or maxWait has passed.
func (p *probe) await(ctx context.Context, maxWait time.Duration) error {
	r := p.run
	within, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	for {
		page, err := p.keyed.Events(within, r.id, client.EventQuery{From: len(r.events), Wait: min(pollWait, maxWait)})
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
				r.unread = fmt.Errorf("a poll returned event %d where event %d was expected", e.Sequence, len(r.events))
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

// started returns the run, or skips the check without --workflow.
func (p *probe) started() (*run, error) {
	if p.run == nil {
		return nil, skipped("needs a run; set --workflow")
	}
	return p.run, nil
}

// ended returns the run with all its events, or skips the check if the run has not ended.
func (p *probe) ended() (*run, error) {
	r, err := p.started()
	switch {
	case err != nil:
		return nil, err
	case r.unread != nil:
		return nil, unpolled
	case !r.terminal:
		return nil, skipped("the run has not ended; use a workflow that ends, or a longer --for")
	}
	return r, nil
}
