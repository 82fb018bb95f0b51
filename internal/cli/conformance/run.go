package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/tmaxmax/go-sse"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/runs"
	"waybill.dev/waybill/internal/cli/verdict"
	"waybill.dev/waybill/internal/runcheck"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// startChecks are the checks of the start of a run.
func startChecks() []check {
	return []check{
		{"runs.created", "a start returns 201 with an open run", "host core 2.3", created},
		{"idempotency.same-request", "the same key and request return the same run, marked as a replay", "host core 2.1", sameRequest},
		{"idempotency.other-request", "the same key with another request gets 409", "host core 2.1", otherRequest},
	}
}

// readChecks are the checks of reads of a run.
func readChecks() []check {
	return []check{
		{"runs.conditional", "the snapshot answers 304 to its ETag", "host core 2.4", conditional},
		{"poll.repeats", "polls of an ended run return the same document", "host core 4.7", pollRepeats},
		{"poll.beyond", "a poll after the last event returns an empty list", "host core 4.7", pollBeyond},
		{"poll.cursor", "a cursor that is not a number gets 400", "host core 4.7", pollCursor},
		{"stream.whole", "the stream has every event once, in order, and closes after the last", "host core 4.2", streamWhole},
		{"stream.resume", "Last-Event-ID resumes after that event", "host core 4.1", streamResume},
		{"stream.mode", "an unknown stream mode gets 400 with the supported modes", "host core 4.1", streamMode},
		{"stream.json", "Accept: application/json returns the events as one document", "host core 4.1", streamJSON},
		{"bundle.events", "the debug bundle has every event and is not cached", "host core 10.4", bundle},
	}
}

func created(_ context.Context, p *probe, f *findings) error {
	r, err := p.started()
	if err != nil || !f.answered("POST /v1/runs", r.first, http.StatusCreated, "application/json") {
		return err
	}
	var began client.Started
	if err := json.Unmarshal(r.first.Body, &began); err != nil {
		f.add("POST /v1/runs: %v", err)
		return nil
	}
	open := []wire.Status{
		wire.StatusPending, wire.StatusRunning, wire.StatusWaitingApproval, wire.StatusWaitingInput,
		wire.StatusWaitingExternal,
	}
	if !slices.Contains(open, began.Status) {
		f.add("status is %q, not an open status", began.Status)
	}
	if u, err := url.Parse(began.EventsURL); err != nil || !u.IsAbs() {
		f.add("eventsUrl is %q, not an absolute URL", began.EventsURL)
	}
	return nil
}

// repeatable returns the run, or skips the check if the host has no idempotency keys.
func (p *probe) repeatable() (*run, error) {
	if s := p.offer.Idempotency.Supported; s != nil && !*s {
		return nil, skipped("the host does not support idempotency keys")
	}
	return p.started()
}

func sameRequest(ctx context.Context, p *probe, f *findings) error {
	r, err := p.repeatable()
	if err != nil {
		return err
	}
	a, err := p.post(ctx, r.key, r.body)
	if err != nil {
		return err
	}
	if a.Status != http.StatusOK && a.Status != http.StatusCreated {
		f.add("HTTP %d, not 200 or 201", a.Status)
		return nil
	}
	var again client.Started
	if json.Unmarshal(a.Body, &again) != nil || again.RunID != r.id {
		f.add("runId is %q, not that of the first response", again.RunID)
	}
	if !a.Replayed {
		f.add("openwop-Idempotent-Replay is not true")
	}
	return nil
}

func otherRequest(ctx context.Context, p *probe, f *findings) error {
	r, err := p.repeatable()
	if err != nil {
		return err
	}
	other := r.body
	other.Tags = []string{"conformance"}
	a, err := p.post(ctx, r.key, other)
	if err != nil {
		return err
	}
	f.refused("same key, other body", a, http.StatusConflict, fault.IdempotencyKeyMismatch)
	if bytes.Contains(a.Body, []byte(r.id)) {
		f.add("the error reveals the run of the first request")
	}
	return nil
}

// events are the check that the events can be polled, and the checks of `waybill run verify`.
func (p *probe) events(ctx context.Context) ([]verdict.Check, error) {
	polled := verdict.Check{
		Name:    "events.poll",
		Status:  verdict.OK,
		Detail:  "the events of a run can be polled",
		Section: "host core 4.7",
	}
	r, why := p.started()
	if why != nil {
		polled.Status, polled.Detail = verdict.Skipped, why.Error()
		return append([]verdict.Check{polled}, unverified(why)...), nil
	}
	var k *runcheck.Check
	if r.unread == nil {
		k, r.unread = runs.Verify(ctx, p.keyed, r.id)
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(r.unread, client.ErrUnreachable):
		return nil, r.unread
	case r.unread != nil:
		polled.Found(found{polled.Name, r.unread.Error()}, r.unread.Error())
		return append([]verdict.Check{polled}, unverified(unpolled)...), nil
	}
	checks := []verdict.Check{polled}
	for _, c := range runs.Verdicts(k) {
		c.Name = eventsPrefix + c.Name
		checks = append(checks, c)
	}
	return checks, nil
}

// eventsPrefix precedes the names of the checks of `waybill run verify`.
const eventsPrefix = "events."

// unpolled skips checks that need the events.
const unpolled skipped = "the events of the run cannot be polled"

// unverified returns the checks of `waybill run verify` as skipped.
func unverified(why error) []verdict.Check {
	var checks []verdict.Check
	for _, row := range runcheck.Rows() {
		checks = append(checks, verdict.Check{
			Name:    eventsPrefix + string(row.Rule),
			Status:  verdict.Skipped,
			Detail:  why.Error(),
			Section: row.Section,
		})
	}
	return checks
}

func conditional(ctx context.Context, p *probe, f *findings) error {
	if !p.offer.RestTransport.ConditionalRunGet {
		return skipped("the host does not advertise restTransport.conditionalRunGet")
	}
	r, err := p.ended()
	if err != nil {
		return err
	}
	a, err := get(ctx, p.keyed, r.path(""), nil)
	if err != nil || !f.answered("GET /v1/runs/{runId}", a, 200, "application/json") {
		return err
	}
	tag := a.Header.Get("ETag")
	if tag == "" {
		f.add("the snapshot has no ETag")
		return nil
	}
	return unchanged(ctx, p.keyed, r.path(""), tag, f)
}

// page is the response to a poll.
type page struct {
	Events       []json.RawMessage `json:"events"`
	IsComplete   *bool             `json:"isComplete"`
	LastEventSeq int               `json:"lastEventSeq"`
}

func pollRepeats(ctx context.Context, p *probe, f *findings) error {
	r, err := p.ended()
	if err != nil {
		return err
	}
	var answers []*client.Answer
	for range 2 {
		a, err := get(ctx, p.keyed, r.path("/events/poll"), nil)
		if err != nil || !f.answered("GET /v1/runs/{runId}/events/poll", a, 200, "application/json") {
			return err
		}
		answers = append(answers, a)
	}
	var one page
	switch err := json.Unmarshal(answers[0].Body, &one); {
	case err != nil:
		f.add("cannot decode the response: %v", err)
	case one.IsComplete == nil:
		f.add("isComplete is missing")
	case !strictjson.Same(answers[0].Body, answers[1].Body):
		f.add("the second response differs from the first")
	}
	return nil
}

func pollBeyond(ctx context.Context, p *probe, f *findings) error {
	r, err := p.ended()
	if err != nil {
		return err
	}
	a, err := get(ctx, p.keyed, r.path("/events/poll"), url.Values{"lastSequence": {"1000000"}})
	if err != nil || !f.answered("with lastSequence 1000000", a, 200, "application/json") {
		return err
	}
	var one page
	if json.Unmarshal(a.Body, &one) != nil || one.Events == nil || len(one.Events) > 0 {
		f.add("events is not an empty list")
	}
	return nil
}

func pollCursor(ctx context.Context, p *probe, f *findings) error {
	r, err := p.started()
	if err != nil {
		return err
	}
	a, err := get(ctx, p.keyed, r.path("/events/poll"), url.Values{"lastSequence": {"last"}})
	if err != nil {
		return err
	}
	f.refused("with lastSequence last", a, 400, fault.ValidationError)
	return nil
}

// debug is the mode that shows every event.
var debug = url.Values{"streamMode": {"debug"}}

// stream reads a run's stream to its end, after an event; empty reads from the start.
func (p *probe) stream(ctx context.Context, r *run, after string, f *findings) ([]sse.Event, error) {
	header := []string{"Accept", "text/event-stream"}
	if after != "" {
		header = append(header, "Last-Event-ID", after)
	}
	a, err := get(ctx, p.keyed, r.path("/events"), debug, header...)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil: // such as a timeout of a stream that does not end
		f.add("the stream of an ended run is not closed: %v", err)
		return nil, nil
	case !f.answered("GET /v1/runs/{runId}/events", a, 200, "text/event-stream"):
		return nil, nil
	}
	var all []sse.Event
	for e, err := range sse.Read(bytes.NewReader(a.Body), &sse.ReadConfig{MaxEventSize: len(a.Body) + 1}) {
		if err != nil {
			f.add("cannot decode the stream: %v", err)
			return nil, nil
		}
		if e.Data != "" {
			all = append(all, e)
		}
	}
	return all, nil
}

// compare expects a stream to have exactly these events.
func (f *findings) compare(got []sse.Event, want []client.Event) {
	if len(got) != len(want) {
		f.add("%d events, not %d", len(got), len(want))
		return
	}
	for i, e := range want {
		switch id := strconv.Itoa(e.Sequence); {
		case got[i].LastEventID != id:
			f.add("event %s has id %q", id, got[i].LastEventID)
		case got[i].Type != string(e.Type):
			f.add("event %s has type %q, not %s", id, got[i].Type, e.Type)
		case !strictjson.Same([]byte(got[i].Data), e.Doc):
			f.add("event %s differs from the polled event", id)
		}
	}
}

func streamWhole(ctx context.Context, p *probe, f *findings) error {
	r, err := p.ended()
	if err != nil {
		return err
	}
	all, err := p.stream(ctx, r, "", f)
	if err == nil && len(f.lines) == 0 {
		f.compare(all, r.events)
	}
	return err
}

func streamResume(ctx context.Context, p *probe, f *findings) error {
	r, err := p.ended()
	if err != nil {
		return err
	}
	at := len(r.events) / 2
	if at == 0 {
		return skipped("the run has only one event")
	}
	rest, err := p.stream(ctx, r, strconv.Itoa(r.events[at-1].Sequence), f)
	if err == nil && len(f.lines) == 0 {
		f.compare(rest, r.events[at:])
	}
	return err
}

func streamMode(ctx context.Context, p *probe, f *findings) error {
	r, err := p.started()
	if err != nil {
		return err
	}
	a, err := get(ctx, p.keyed, r.path("/events"), url.Values{"streamMode": {"conformance"}}, "Accept", "text/event-stream")
	if err != nil {
		return err
	}
	f.refused("with streamMode conformance", a, 400, fault.UnsupportedStreamMode)
	var refusal struct {
		Details struct{ Supported []string }
	}
	if a.Status == 400 && (json.Unmarshal(a.Body, &refusal) != nil || len(refusal.Details.Supported) == 0) {
		f.add("details.supported is missing or empty")
	}
	return nil
}

func streamJSON(ctx context.Context, p *probe, f *findings) error {
	r, err := p.ended()
	if err != nil {
		return err
	}
	a, err := get(ctx, p.keyed, r.path("/events"), debug, "Accept", "application/json")
	if err != nil || !f.answered("with Accept application/json", a, 200, "application/json") {
		return err
	}
	var one page
	if json.Unmarshal(a.Body, &one) != nil || len(one.Events) != len(r.events) {
		f.add("%d events, not %d", len(one.Events), len(r.events))
	}
	return nil
}

func bundle(ctx context.Context, p *probe, f *findings) error {
	if !p.offer.DebugBundle.Supported {
		return skipped("the host does not advertise debugBundle")
	}
	r, err := p.ended()
	if err != nil {
		return err
	}
	a, err := get(ctx, p.keyed, r.path("/debug-bundle"), nil)
	if err != nil || !f.answered("GET /v1/runs/{runId}/debug-bundle", a, 200, "application/json") {
		return err
	}
	var doc struct {
		BundleVersion string
		Events        []json.RawMessage
		Truncated     bool
	}
	if json.Unmarshal(a.Body, &doc) != nil || doc.BundleVersion == "" {
		f.add("bundleVersion is missing")
	} else if !doc.Truncated && len(doc.Events) != len(r.events) {
		f.add("%d events, not %d", len(doc.Events), len(r.events))
	}
	if a.Header.Get("Cache-Control") != "no-store" {
		f.add("Cache-Control is %q, not no-store", a.Header.Get("Cache-Control"))
	}
	return nil
}
