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

// ofStart are the checks of how a run is started.
func ofStart() []check {
	return []check{
		{"runs.created", "a start is answered with the run, before it ends", "host core 2.3", created},
		{"idempotency.same-request", "the same key and request give the same run, and say so", "host core 2.1", sameRequest},
		{"idempotency.other-request", "the same key is of no other request", "host core 2.1", otherRequest},
	}
}

// ofReading are the checks of how a run is read.
func ofReading() []check {
	return []check{
		{"runs.conditional", "who has the snapshot is not sent it again", "host core 2.4", conditional},
		{"poll.repeats", "polls of a run that has ended say the same", "host core 4.7", pollRepeats},
		{"poll.beyond", "a poll behind the last event is answered, with none", "host core 4.7", pollBeyond},
		{"poll.cursor", "a cursor that is no number is refused", "host core 4.7", pollCursor},
		{"stream.whole", "the stream has each event once, in order, and ends with the run", "host core 4.2", streamWhole},
		{"stream.resume", "Last-Event-ID gives the rest, and nothing else", "host core 4.1", streamResume},
		{"stream.mode", "a mode that is not there is refused, with those that are", "host core 4.1", streamMode},
		{"stream.json", "who takes JSON alone is given the events as one document", "host core 4.1", streamJSON},
		{"bundle.events", "the debug bundle has every event, and is not kept", "host core 10.4", bundle},
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
		f.add("its status is %q", began.Status)
	}
	if u, err := url.Parse(began.EventsURL); err != nil || !u.IsAbs() {
		f.add("eventsUrl is %q, which is no absolute URL", began.EventsURL)
	}
	return nil
}

// repeatable gives the run, if the host keeps keys.
func (p *probe) repeatable() (*run, error) {
	if s := p.offer.Idempotency.Supported; s != nil && !*s {
		return nil, skipped("it advertises that it keeps no keys")
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
		f.add("HTTP %d, not that of the first answer", a.Status)
		return nil
	}
	var again client.Started
	if json.Unmarshal(a.Body, &again) != nil || again.RunID != r.id {
		f.add("it started another run, %s", again.RunID)
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
	f.refused("the key with another body", a, http.StatusConflict, fault.IdempotencyKeyMismatch)
	if bytes.Contains(a.Body, []byte(r.id)) {
		f.add("the refusal names the run of the first request")
	}
	return nil
}

// events are the checks of `waybill run verify`, and that there is something to check.
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
		c.Name = ofEvents + c.Name
		checks = append(checks, c)
	}
	return checks, nil
}

// ofEvents is before the names of the checks of `waybill run verify`.
const ofEvents = "events."

// unpolled is why a check is left out that looks at the events.
const unpolled skipped = "the events of the run cannot be polled"

// unverified are those checks, left out.
func unverified(why error) []verdict.Check {
	var checks []verdict.Check
	for _, row := range runcheck.Rows() {
		checks = append(checks, verdict.Check{
			Name:    ofEvents + string(row.Rule),
			Status:  verdict.Skipped,
			Detail:  why.Error(),
			Section: row.Section,
		})
	}
	return checks
}

func conditional(ctx context.Context, p *probe, f *findings) error {
	if !p.offer.RestTransport.ConditionalRunGet {
		return skipped("it does not advertise restTransport.conditionalRunGet")
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

// page is what a poll answers.
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
		f.add("the answer cannot be read: %v", err)
	case one.IsComplete == nil:
		f.add("the answer lacks isComplete")
	case !strictjson.Same(answers[0].Body, answers[1].Body):
		f.add("the second answer is another than the first")
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
		f.add("events is not the empty list")
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

// stream reads a run's stream to its end, from behind an event on; empty: from the start.
func (p *probe) stream(ctx context.Context, r *run, after string, f *findings) ([]sse.Event, error) {
	header := []string{"Accept", "text/event-stream"}
	if after != "" {
		header = append(header, "Last-Event-ID", after)
	}
	a, err := get(ctx, p.keyed, r.path("/events"), debug, header...)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil: // a stream that does not end is one that is broken off
		f.add("the stream of a run that has ended is not closed: %v", err)
		return nil, nil
	case !f.answered("GET /v1/runs/{runId}/events", a, 200, "text/event-stream"):
		return nil, nil
	}
	var all []sse.Event
	for e, err := range sse.Read(bytes.NewReader(a.Body), &sse.ReadConfig{MaxEventSize: len(a.Body) + 1}) {
		if err != nil {
			f.add("the stream cannot be read: %v", err)
			return nil, nil
		}
		if e.Data != "" {
			all = append(all, e)
		}
	}
	return all, nil
}

// compare wants a stream to have just these events.
func (f *findings) compare(got []sse.Event, want []client.Event) {
	if len(got) != len(want) {
		f.add("it has %d events, not %d", len(got), len(want))
		return
	}
	for i, e := range want {
		switch id := strconv.Itoa(e.Sequence); {
		case got[i].LastEventID != id:
			f.add("event %s has the id %q", id, got[i].LastEventID)
		case got[i].Type != string(e.Type):
			f.add("event %s is named %q, not %s", id, got[i].Type, e.Type)
		case !strictjson.Same([]byte(got[i].Data), e.Doc):
			f.add("event %s is not what a poll gives", id)
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
		return skipped("the run has one event alone")
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
		f.add("details.supported does not say which there are")
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
		f.add("it has %d events, not %d", len(one.Events), len(r.events))
	}
	return nil
}

func bundle(ctx context.Context, p *probe, f *findings) error {
	if !p.offer.DebugBundle.Supported {
		return skipped("it does not advertise debugBundle")
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
		f.add("it has no bundleVersion")
	} else if !doc.Truncated && len(doc.Events) != len(r.events) {
		f.add("it has %d events, not %d", len(doc.Events), len(r.events))
	}
	if a.Header.Get("Cache-Control") != "no-store" {
		f.add("Cache-Control is %q, not no-store", a.Header.Get("Cache-Control"))
	}
	return nil
}
