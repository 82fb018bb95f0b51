package sim

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing/fstest"

	"google.golang.org/grpc"

	"waybill.dev/waybill/examples"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
)

// unavailable returns a peer's fault as the generated clients return it.
func unavailable(err error) error {
	return fault.New(fault.ServiceUnavailable, "peer is unreachable").Wrap(err)
}

// The kind of envelope that models of generated workflows produce, and the example kind of stories.
const (
	noteKind   = "vendor.sim.note"
	triageKind = "vendor.waybill.ticket.triage"
)

var kindsDir = func() fs.FS {
	triage, err := examples.FS.ReadFile("triage/kinds/" + triageKind + ".schema.json")
	if err != nil {
		panic("sim: " + err.Error())
	}
	return fstest.MapFS{triageKind + ".schema.json": {Data: triage}, noteKind + ".schema.json": {Data: []byte(
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","required":["note"],"additionalProperties":false,"properties":{"note":{"type":"string","minLength":3}}}`,
	)}}
}()

// acceptorPort is a dispatcher's access to the acceptor: a request, the work in another process,
// and an answer.
type acceptorPort struct {
	acceptorv1.AcceptorClient
	p *process
}

// Accept sends an envelope to the acceptor.
func (a acceptorPort) Accept(ctx context.Context, in *acceptorv1.AcceptRequest, _ ...grpc.CallOption) (*acceptorv1.AcceptResponse, error) {
	detail := fmt.Sprintf("%s %s %s", in.GetRun().GetRunId(), in.GetNodeId(), short(in.GetEnvelope()))
	if err := a.p.call(ctx, atAccept, detail, nil); err != nil {
		return nil, unavailable(err)
	}
	type answer struct {
		res *acceptorv1.AcceptResponse
		err error
	}
	peer, done := a.p.w.acceptorNow(), make(chan answer, 1)
	a.p.w.wg.Go(func() {
		res, err := peer.accepts().Accept(peer.ctx, in)
		done <- answer{res, err}
	})
	var got answer
	select {
	case got = <-done:
	case <-peer.ctx.Done():
		return nil, unavailable(errDead)
	case <-ctx.Done():
		return nil, unavailable(ctx.Err())
	}
	if err := a.p.call(ctx, atOutcome, detail, nil); err != nil {
		return nil, unavailable(err)
	}
	return got.res, got.err
}

// ListKinds is not a boundary: its caller holds a lock, and synctest does not treat that as
// blocked. It fails during outages.
func (a acceptorPort) ListKinds(_ context.Context, in *acceptorv1.ListKindsRequest, _ ...grpc.CallOption) (*acceptorv1.ListKindsResponse, error) {
	listed.Lock()
	defer listed.Unlock()
	var err error
	if listed.res == nil { // compiling the kinds' schemas is slow, and all acceptors share them
		listed.res, err = a.p.w.acceptorNow().accepts().ListKinds(a.p.ctx, in)
	}
	return listed.res, err
}

// listed caches the kinds for the acceptors of all worlds.
var listed struct {
	sync.Mutex
	res *acceptorv1.ListKindsResponse
}

// canary is the only secret of the simulated redactor, and veil its replacement.
const (
	// Secret is the canary, for use in stories.
	Secret = canary

	canary = "canary-7f3a9c"
	veil   = "[REDACTED:canary]"
)

// redactorPort is a process's access to the redactor.
type redactorPort struct {
	redactorv1.RedactorClient
	p *process
}

// Redact replaces the canary in documents and texts.
func (r redactorPort) Redact(ctx context.Context, in *redactorv1.RedactRequest, _ ...grpc.CallOption) (*redactorv1.RedactResponse, error) {
	var b strings.Builder
	for _, d := range in.GetDocuments() {
		b.Write(d)
	}
	if err := r.p.call(ctx, atRedact, in.GetScope().GetRunId()+" "+short([]byte(b.String()+strings.Join(in.GetTexts(), "\x00"))), nil); err != nil {
		return nil, unavailable(err)
	}
	out := &redactorv1.RedactResponse{}
	scrub := func(s string) string {
		out.Count += int32(strings.Count(s, canary))
		return strings.ReplaceAll(s, canary, veil)
	}
	for _, d := range in.GetDocuments() {
		out.Documents = append(out.Documents, []byte(scrub(string(d))))
	}
	for _, s := range in.GetTexts() {
		out.Texts = append(out.Texts, scrub(s))
	}
	return out, nil
}

// RedactStream replaces the canary in a streamed text.
func (r redactorPort) RedactStream(ctx context.Context, _ ...grpc.CallOption) (grpc.BidiStreamingClient[redactorv1.RedactStreamRequest, redactorv1.RedactStreamResponse], error) {
	return &scrubStream{ctx: ctx, p: r.p}, nil
}

type scrubStream struct {
	grpc.ClientStream
	ctx  context.Context //nolint:containedctx // a gRPC stream has one
	p    *process
	run  string
	held string // possibly the beginning of the canary
	last bool
}

func (s *scrubStream) Send(in *redactorv1.RedactStreamRequest) error {
	s.run, s.held, s.last = in.GetScope().GetRunId(), s.held+in.GetText(), in.GetLast()
	return nil
}

func (s *scrubStream) Recv() (*redactorv1.RedactStreamResponse, error) {
	if err := s.p.call(s.ctx, atScrub, s.run+" "+short([]byte(s.held)), nil); err != nil {
		return nil, unavailable(err)
	}
	text := strings.ReplaceAll(s.held, canary, veil)
	keep := 0
	for n := min(len(canary)-1, len(text)); n > 0 && !s.last; n-- {
		if strings.HasPrefix(canary, text[len(text)-n:]) {
			keep = n
			break
		}
	}
	s.held = text[len(text)-keep:]
	return &redactorv1.RedactStreamResponse{Text: text[:len(text)-keep]}, nil
}

// timersPort is a dispatcher's access to the read model's index of timers, which may lag behind the
// log.
type timersPort struct {
	eventlogv1.EventLogClient
	p *process
}

// ListDueTimers returns overdue runs, as far as the index is current.
func (t timersPort) ListDueTimers(ctx context.Context, in *eventlogv1.ListDueTimersRequest, _ ...grpc.CallOption) (*eventlogv1.ListDueTimersResponse, error) {
	out := &eventlogv1.ListDueTimersResponse{}
	w := t.p.w
	err := t.p.call(ctx, atTimers, "", func() error {
		stale := w.faulty() && w.hit(w.scenario.Faults.Stale)
		for _, id := range w.runIDs() {
			h := w.runs[id]
			due, ok := h.due, h.waits
			if stale {
				due, ok = h.dueBefore, h.waitsBefore
			}
			timer := &eventlogv1.DueTimer{Tenant: tenant, WorkflowId: h.record.WorkflowID, RunId: id, DueUnixMs: due.UnixMilli()}
			if ok && timer.DueUnixMs < in.GetBeforeUnixMs() && compareTimers(timer, in.GetAfter()) > 0 {
				out.Timers = append(out.Timers, timer)
			}
		}
		slices.SortFunc(out.Timers, compareTimers)
		out.Timers = out.Timers[:min(len(out.Timers), int(in.GetLimit()))]
		return nil
	})
	if err != nil {
		return nil, unavailable(err)
	}
	return out, nil
}

// compareTimers orders timers by their due times.
func compareTimers(a, b *eventlogv1.DueTimer) int {
	return cmp.Or(cmp.Compare(a.GetDueUnixMs(), b.GetDueUnixMs()), cmp.Compare(a.GetRunId(), b.GetRunId()))
}

// ListOwnedRuns returns the runs that a process owns.
func (t timersPort) ListOwnedRuns(ctx context.Context, in *eventlogv1.ListOwnedRunsRequest, _ ...grpc.CallOption) (*eventlogv1.ListOwnedRunsResponse, error) {
	out := &eventlogv1.ListOwnedRunsResponse{}
	w := t.p.w
	err := t.p.call(ctx, atTimers, "owned by "+in.GetProcess(), func() error {
		for _, id := range w.runIDs() {
			h, o := w.runs[id], frame.Ownership{}
			for _, f := range h.frames {
				o = o.After(f)
			}
			if o.Owner == in.GetProcess() && !h.state.Status.Terminal() && id > in.GetAfter().GetRunId() {
				out.Runs = append(out.Runs, &eventlogv1.OwnedRun{Tenant: tenant, WorkflowId: h.record.WorkflowID, RunId: id})
			}
		}
		return nil
	})
	if err != nil {
		return nil, unavailable(err)
	}
	return out, nil
}
