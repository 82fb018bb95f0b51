// Package clients implements the dispatcher's ports with the generated clients of the other
// services. It converts messages and decides nothing.
package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/metadata"

	"waybill.dev/waybill/internal/runlog"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	runlogv1 "waybill.dev/waybill/proto/gen/go/waybill/runlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/engine/timers"
	"waybill.dev/waybill/services/dispatcher/model"
)

// Redactor redacts documents and streams with the redactor service.
type Redactor struct {
	Client        redactorv1.RedactorClient
	Registrations *Registrations
}

// Redact redacts documents; see engine.Redactor.
func (r Redactor) Redact(ctx context.Context, tenant, runID string, registered bool, docs [][]byte) ([][]byte, bool, error) {
	at := scope{tenant, runID}
	var res *redactorv1.RedactResponse
	if err := r.Registrations.retryUnregistered(ctx, at, func() (err error) {
		res, err = r.Client.Redact(ctx, &redactorv1.RedactRequest{
			Scope:     r.Registrations.scope(at, registered),
			Documents: docs,
		})
		return err
	}); err != nil {
		return nil, false, fmt.Errorf("redactor: %w", err)
	}
	if len(res.GetDocuments()) != len(docs) {
		return nil, false, fmt.Errorf("redactor: sent %d documents, got %d", len(docs), len(res.GetDocuments()))
	}
	return res.GetDocuments(), res.GetCount() > 0, nil
}

// Scrubber opens redacting streams for a run; see model.Scrubber.
func (r Redactor) Scrubber(tenant, runID string, registered bool) model.Scrubber {
	return scrubber{r, scope{tenant, runID}, registered}
}

// Acceptor runs envelopes through the acceptor service.
type Acceptor struct {
	Client        acceptorv1.AcceptorClient
	Registrations *Registrations
}

// Accept sends an envelope to the acceptor; see engine.Acceptor.
func (a Acceptor) Accept(ctx context.Context, r subject.Run, head frame.Head, boundary wire.Trust, req model.AcceptRequest) (engine.Accepted, error) {
	msg := &acceptorv1.AcceptRequest{
		Run:    &runlogv1.RunRef{Tenant: r.Tenant, WorkflowId: r.WorkflowID, RunId: r.RunID},
		Head:   &runlogv1.Head{Pos: head.Pos, Hash: head.Hash, Next: int32(head.Next)}, //nolint:gosec // G115: a run has far fewer events
		NodeId: req.NodeID, Envelope: req.Envelope, TrustBoundary: string(boundary),
		TurnCount: int32(req.TurnCount), SchemaRounds: int32(req.SchemaRounds), //nolint:gosec // G115: small counters
		ClarificationRounds: int32(req.Clarifications), //nolint:gosec // G115: small counters
		QuestionTimeoutMs:   req.QuestionTimeout.Milliseconds(),
	}
	if a := req.Answer; a.Size > 1 {
		msg.Answer = &acceptorv1.AnswerPart{Size: int32(a.Size), Index: int32(a.Index)} //nolint:gosec // G115: small counters
		for _, seq := range a.With {
			msg.Answer.With = append(msg.Answer.With, int32(seq)) //nolint:gosec // G115: a run has far fewer events
		}
	}
	for _, d := range req.Preceding {
		msg.Preceding = append(msg.Preceding, &acceptorv1.PrecedingEvent{
			Type:         string(d.Type),
			Payload:      d.Payload,
			ContentTrust: string(d.Trust),
		})
	}
	if req.Contract != nil {
		msg.Contract = &acceptorv1.Contract{Accepts: req.Contract.Accepts, RefusalMode: req.Contract.RefusalMode}
	}
	if req.Traceparent != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", req.Traceparent)
	}
	at := scope{r.Tenant, r.RunID}
	var res *acceptorv1.AcceptResponse
	err := a.Registrations.retryUnregistered(ctx, at, func() (err error) {
		msg.Registrations = a.Registrations.names(at)
		res, err = a.Client.Accept(ctx, msg)
		return err
	})
	if fault.CodeOf(err) == fault.Conflict { // the log's end differs from ours
		return engine.Accepted{}, fmt.Errorf("%w: acceptor: %w", runlog.ErrConflict, err)
	}
	if err != nil {
		return engine.Accepted{}, fmt.Errorf("acceptor: %w", err)
	}
	return readAccepted(res, len(req.Preceding))
}

// readAccepted reads the response to a request with a number of preceding events. An acceptor of an
// older release ignores them and records the envelope alone. The caller then records them after the
// envelope's events instead of before.
func readAccepted(res *acceptorv1.AcceptResponse, preceding int) (engine.Accepted, error) {
	var out engine.Accepted
	if err := json.Unmarshal(res.GetOutcome(), &out.Outcome); err != nil {
		return out, fmt.Errorf("acceptor: read outcome: %w", err)
	}
	out.Outcome.Payload = res.GetPayload()
	h := res.GetHead()
	out.Head = frame.Head{Pos: h.GetPos(), Hash: h.GetHash(), Next: int(h.GetNext())}
	if n := len(res.GetPreceding()); n != 0 && n != preceding {
		return out, fmt.Errorf("acceptor: sent %d preceding events, and %d were recorded", preceding, n)
	}
	var err error
	if out.Preceding, err = parseEvents(res.GetPreceding()); err != nil {
		return out, err
	}
	if out.Events, err = parseEvents(res.GetEvents()); err != nil {
		return out, err
	}
	if len(out.Events) > 0 {
		out.Outcome.Sequence, out.Outcome.Hints = out.Events[0].Sequence, wire.HintsOf(out.Events[0])
	}
	return out, nil
}

// parseEvents parses a list of encoded events.
func parseEvents(docs [][]byte) ([]wire.Event, error) {
	events, err := wire.ParseEvents(append(append([]byte("["), bytes.Join(docs, []byte(","))...), ']'))
	if err != nil {
		return nil, fmt.Errorf("acceptor: %w", err)
	}
	return events, nil
}

// Assets reads assets from the acceptor service.
type Assets struct{ Client acceptorv1.AcceptorClient }

// Load returns the asset at a URL for a run; see model.Assets.
func (a Assets) Load(ctx context.Context, r subject.Run, url string) (model.Asset, bool, error) {
	res, err := a.Client.LoadAsset(ctx, &acceptorv1.LoadAssetRequest{
		Run: &runlogv1.RunRef{Tenant: r.Tenant, WorkflowId: r.WorkflowID, RunId: r.RunID}, Url: url,
	})
	if err != nil {
		return model.Asset{}, false, fmt.Errorf("acceptor: load asset: %w", err)
	}
	if res.GetAsset() == nil {
		return model.Asset{}, false, nil
	}
	return model.Asset{MIME: res.GetAsset().GetMimeType(), Data: res.GetAsset().GetData()}, true, nil
}

// Schemas caches the acceptor's registry of kinds. The registry does not change while the acceptor
// runs. It is read again after schemasFresh, so that a restarted acceptor with other kinds is
// noticed.
type Schemas struct {
	client acceptorv1.AcceptorClient
	clock  func() time.Time

	mu     sync.Mutex // guards all below
	read   time.Time
	kinds  map[string]model.Kind
	limits model.Limits
}

// schemasFresh is how long a read of the kinds is valid.
const schemasFresh = 30 * time.Second

// NewSchemas makes a reader of the acceptor's kinds.
func NewSchemas(client acceptorv1.AcceptorClient, clock func() time.Time) *Schemas {
	return &Schemas{client: client, clock: clock}
}

// Kind returns an envelope kind; see model.Schemas.
func (s *Schemas) Kind(ctx context.Context, name string) (model.Kind, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return model.Kind{}, false, err
	}
	k, ok := s.kinds[name]
	return k, ok, nil
}

// Limits are the host's envelope limits; see model.Schemas.
func (s *Schemas) Limits(ctx context.Context) (model.Limits, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return model.Limits{}, err
	}
	return s.limits, nil
}

// Forget makes the next read ask the acceptor.
func (s *Schemas) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.read = time.Time{}
}

func (s *Schemas) refresh(ctx context.Context) error {
	if s.kinds != nil && s.clock().Sub(s.read) < schemasFresh {
		return nil
	}
	res, err := s.client.ListKinds(ctx, &acceptorv1.ListKindsRequest{})
	if err != nil {
		if s.kinds != nil {
			return nil // the previous kinds are better than none
		}
		return fmt.Errorf("acceptor: list kinds: %w", err)
	}
	s.kinds = make(map[string]model.Kind, len(res.GetKinds()))
	for _, k := range res.GetKinds() {
		s.kinds[k.GetName()] = model.Kind{Name: k.GetName(), Version: int(k.GetVersion()), Schema: k.GetSchema()}
	}
	s.limits = model.Limits{
		EnvelopesPerTurn: int(res.GetEnvelopesPerTurn()), SchemaRounds: int(res.GetSchemaRounds()),
		ClarificationRounds: int(res.GetClarificationRounds()), MaxInlineBytes: int(res.GetMaxInlineMediaBytes()),
	}
	s.read = s.clock()
	return nil
}

// Index finds overdue runs with the event log's index of timers.
type Index struct{ Client eventlogv1.EventLogClient }

// OwnedRun is an active run, and the epoch and the time of its owner's claim.
type OwnedRun struct {
	Run   subject.Run
	Epoch uint64
	Since time.Time
}

// Owned returns active runs that a dispatcher process owns, ordered by tenant and run id and
// starting after one; the zero OwnedRun starts at the first. A page with fewer runs than limit
// is the last. The read model first reaches atLeast, a position of the run log (0 does not
// wait); upTo is the position that the page reflects.
func (i Index) Owned(ctx context.Context, process string, after OwnedRun, limit int, atLeast uint64) (runs []OwnedRun, upTo uint64, err error) {
	res, err := i.Client.ListOwnedRuns(ctx, &eventlogv1.ListOwnedRunsRequest{
		Process: process, Limit: int32(limit), AtLeast: atLeast, //nolint:gosec // G115: a small constant
		After: &eventlogv1.OwnedRun{Tenant: after.Run.Tenant, RunId: after.Run.RunID},
	})
	if err != nil {
		return nil, 0, fmt.Errorf("event log: %w", err)
	}
	for _, r := range res.GetRuns() {
		since, err := time.Parse(time.RFC3339, r.GetOwner().GetSince())
		if err != nil && r.GetOwner().GetSince() != "" {
			return nil, 0, fmt.Errorf("event log: owner of run %s: %w", r.GetRunId(), err)
		}
		runs = append(runs, OwnedRun{
			Run:   subject.Run{Tenant: r.GetTenant(), WorkflowID: r.GetWorkflowId(), RunID: r.GetRunId()},
			Epoch: r.GetOwner().GetEpoch(), Since: since,
		})
	}
	return runs, res.GetPosition(), nil
}

// Due names runs whose timer was due before an instant; see timers.Index.
func (i Index) Due(ctx context.Context, before time.Time, after timers.DueRun, limit int) ([]timers.DueRun, error) {
	res, err := i.Client.ListDueTimers(ctx, &eventlogv1.ListDueTimersRequest{
		BeforeUnixMs: before.UnixMilli(), Limit: int32(limit), //nolint:gosec // G115: a small constant
		After: &eventlogv1.DueTimer{Tenant: after.Run.Tenant, RunId: after.Run.RunID, DueUnixMs: after.DueMs},
	})
	if err != nil {
		return nil, fmt.Errorf("event log: %w", err)
	}
	due := make([]timers.DueRun, len(res.GetTimers()))
	for k, t := range res.GetTimers() {
		due[k] = timers.DueRun{
			Run:   subject.Run{Tenant: t.GetTenant(), WorkflowID: t.GetWorkflowId(), RunID: t.GetRunId()},
			DueMs: t.GetDueUnixMs(),
		}
	}
	return due, nil
}
