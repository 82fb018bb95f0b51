package acceptor

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"waybill.dev/waybill/internal/rpc"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	runlogv1 "waybill.dev/waybill/proto/gen/go/waybill/runlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runspan"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// handler is the gRPC face of a Service: decode, call, encode.
type handler struct {
	acceptorv1.UnimplementedAcceptorServer

	s *Service
}

// Accept takes one envelope of a real run. A refusal is an answer, not an error.
func (h handler) Accept(ctx context.Context, req *acceptorv1.AcceptRequest) (*acceptorv1.AcceptResponse, error) {
	in, err := h.request(req)
	if err != nil {
		return nil, err
	}
	leave, err := h.s.large.enter(ctx, len(in.Document))
	if err != nil {
		return nil, err
	}
	defer leave()
	start := h.s.clock()
	in.Traceparent = rpc.Traceparent(ctx)
	run := h.s.atPlace
	if req.GetHead() == nil {
		run = h.s.atHead
	}
	res, err := run(ctx, in)
	if missing(err) != nil || err == nil && res.Unrecorded() {
		// No append has told whether the run has ended. Its secrets are forgotten with
		// its end, so nothing may be shown then that was not read before it.
		ended, lerr := h.s.ledger.Ended(ctx, in.Run)
		switch {
		case lerr != nil:
			res, err = nil, lerr
		case ended:
			res, err = run(ctx, in)
		}
	}
	end := h.s.clock()
	h.s.metrics.counted(res, err, end.Sub(start))
	if err != nil {
		return nil, err
	}
	h.s.logged(ctx, in.Run, res, end.Sub(start))
	h.s.traced(in.Run, res, start, end)
	return response(res), nil
}

// atPlace runs an envelope through the pipeline at the head that its caller, who
// follows the run's log, has come to.
func (s *Service) atPlace(ctx context.Context, in accept.Request) (*accept.Result, error) {
	// How a run began does not change, and one that has ended takes no append: what is
	// remembered will do.
	now, err := s.ledger.Standing(ctx, in.Run)
	switch {
	case err != nil:
		return nil, err
	case now.Ended:
		return s.pipeline.Recall(ctx, in)
	case now.Opened && in.Head.Next == 0:
		return nil, errNotStarted()
	case now.Opened && len(in.Preceding) > 0:
		return nil, errForeign()
	}
	told := in.Registration.Told
	in.Registration, in.Boundary = now.Registration, in.Boundary.Meet(now.Boundary)
	in.Registration.Told = told
	// Dispatchers follow the taint of what they hand in, executors outside need not:
	// there trust only ever falls.
	in.Untrusted = now.Opened && now.Boundary == wire.Untrusted
	return s.pipeline.Run(ctx, in)
}

func (h handler) request(req *acceptorv1.AcceptRequest) (accept.Request, error) {
	run, err := runOf(req.GetRun())
	if err != nil {
		return accept.Request{}, err
	}
	boundary, err := boundaryOf(req.GetTrustBoundary())
	if err != nil {
		return accept.Request{}, err
	}
	switch {
	case req.GetNodeId() == "":
		return accept.Request{}, fault.New(fault.ValidationError, "node_id: must not be empty")
	case req.GetHead() != nil && (req.GetHead().GetPos() == 0 || req.GetHead().GetNext() < 0):
		return accept.Request{}, fault.New(fault.ValidationError, "head: must be the head of a run that has started")
	}
	part, err := partOf(req.GetAnswer())
	if err != nil {
		return accept.Request{}, err
	}
	preceding, err := precedingOf(req)
	if err != nil {
		return accept.Request{}, err
	}
	in := accept.Request{
		Place: accept.Place{
			Run:  run,
			Head: frame.Head{Pos: req.GetHead().GetPos(), Hash: req.GetHead().GetHash(), Next: int(req.GetHead().GetNext())},
		},
		Document: req.GetEnvelope(), NodeID: req.GetNodeId(), Boundary: boundary,
		Counters: h.s.counters(req), ApprovalContext: req.GetApprovalContext(), Answer: part, Preceding: preceding,
		Registration: wire.Registration{Told: req.GetRegistrations()},
	}
	return in, gated(&in, req.GetContract())
}

// partOf reads which part of a model's answer an envelope is.
func partOf(a *acceptorv1.AnswerPart) (wire.AnswerPart, error) {
	p := wire.AnswerPart{Size: int(a.GetSize()), Index: int(a.GetIndex())}
	for _, seq := range a.GetWith() {
		p.With = append(p.With, int(seq))
	}
	switch {
	case p.Size < 0 || p.Index < 0 || p.Index >= max(p.Size, 1):
		return p, fault.New(fault.ValidationError, "answer: size must be the number of envelopes in the model's answer, and index one of them, from 0")
	case len(p.With) > p.Index || slices.ContainsFunc(p.With, func(seq int) bool { return seq < 0 }):
		return p, fault.New(fault.ValidationError, "answer.with: must be the sequences of events that record the envelopes before this one, each once")
	}
	return p, nil
}

// gated adds the node's contract.
func gated(in *accept.Request, c *acceptorv1.Contract) error {
	if c == nil {
		return nil
	}
	in.Contract, in.Mode = &accept.Contract{Accepts: c.GetAccepts()}, accept.RefusalMode(c.GetRefusalMode())
	if in.Mode != "" && in.Mode != accept.FailNode && in.Mode != accept.DiscardAndWarn {
		return fault.New(fault.ValidationError, "contract.refusal_mode: needs fail-node or discard-and-warn")
	}
	return nil
}

// counters pairs what the caller counted with the limits of the host.
func (s *Service) counters(req *acceptorv1.AcceptRequest) accept.Counters {
	l := s.cfg.Limits
	return accept.Counters{
		EnvelopesPerTurn:    &accept.Counter{Current: int(req.GetTurnCount()), Cap: l.EnvelopesPerTurn},
		SchemaRounds:        &accept.Counter{Current: int(req.GetSchemaRounds()), Cap: l.SchemaRounds},
		ClarificationRounds: &accept.Counter{Current: int(req.GetClarificationRounds()), Cap: l.ClarificationRounds},
	}
}

func response(res *accept.Result) *acceptorv1.AcceptResponse {
	resp := &acceptorv1.AcceptResponse{
		Outcome: res.Outcome, Payload: res.Payload,
		Head: &runlogv1.Head{Pos: res.Head.Pos, Hash: res.Head.Hash, Next: int32(res.Head.Next)}, //nolint:gosec // G115: came in as int32, plus a few
	}
	for _, e := range res.Preceding {
		resp.Preceding = append(resp.Preceding, e.AppendJSON(nil))
	}
	for _, e := range res.Events {
		resp.Events = append(resp.Events, e.AppendJSON(nil))
	}
	return resp
}

// logged writes one line per accept; nothing of the payload is in it.
func (s *Service) logged(ctx context.Context, run subject.Run, res *accept.Result, took time.Duration) {
	attrs := []slog.Attr{
		slog.String("tenant", run.Tenant), slog.String("run_id", run.RunID), slog.String("node_id", res.Facts.NodeID),
		slog.String("envelope_type", res.Facts.Kind), slog.String("correlation_id", res.Facts.CorrelationID),
		slog.String("outcome", string(res.Facts.Outcome)), slog.Bool("recalled", res.Recalled), slog.Duration("took", took),
	}
	if res.Facts.Drift {
		attrs = append(attrs, slog.Bool("envelope_schema_version_drift", true))
	}
	if res.Refusal != nil {
		attrs = append(attrs, slog.String("code", string(res.Refusal.Code)))
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "envelope", attrs...)
}

// traced exports the span of one accept. That of an accepted envelope has the id
// which everybody derives; an outcome that was only recalled has its span
// already, and a refused envelope may come again.
func (s *Service) traced(run subject.Run, res *accept.Result, start, end time.Time) {
	if s.spans == nil || res.Recalled {
		return
	}
	trace, parent := runspan.TraceOf(run.RunID, res.Facts.Traceparent)
	span := &runspan.Span{
		Name: runspan.NameAccept, Trace: trace, Parent: parent, Kind: runspan.KindServer, Code: runspan.OK,
		Start: start, End: end, Attributes: res.Facts.Attributes(),
	}
	span.Attributes["openwop.run_id"], span.Attributes["openwop.node_id"] = run.RunID, res.Facts.NodeID
	if res.Refusal == nil {
		span.ID = runspan.AcceptSpan(run.RunID, res.Facts.CorrelationID)
	} else {
		span.Code, span.Message = runspan.Error, string(res.Refusal.Code)
	}
	s.spans.Accepted(span, runspan.Sampled(res.Facts.Traceparent))
}

// ListKinds lists the registered kinds and the limits that go with them.
func (h handler) ListKinds(context.Context, *acceptorv1.ListKindsRequest) (*acceptorv1.ListKindsResponse, error) {
	l := h.s.cfg.Limits
	resp := &acceptorv1.ListKindsResponse{
		Strictness:          string(h.s.cfg.Strictness),
		Subset:              string(h.s.registry.Subset()),
		EnvelopesPerTurn:    int32(l.EnvelopesPerTurn),    //nolint:gosec // G115: Config.Validate bounds it
		SchemaRounds:        int32(l.SchemaRounds),        //nolint:gosec // G115: as above
		ClarificationRounds: int32(l.ClarificationRounds), //nolint:gosec // G115: as above
	}
	if h.s.assets != nil {
		n := int64(h.s.cfg.MaxInlineBytes)
		resp.MaxInlineMediaBytes = &n
	}
	for _, k := range h.s.registry.All() {
		resp.Kinds = append(resp.Kinds, &acceptorv1.Kind{
			Name: k.Name, Version: int32(k.Version), Schema: k.Schema, Universal: k.Universal, //nolint:gosec // G115: a version has 31 bits
		})
	}
	return resp, nil
}

// Exercise serves the test seam; without the switch there is nothing here.
func (h handler) Exercise(ctx context.Context, req *acceptorv1.ExerciseRequest) (*acceptorv1.ExerciseResponse, error) {
	if h.s.seam == nil {
		return nil, fault.New(fault.NotFound, "test seams are off")
	}
	if !subject.Token(req.GetTenant()) {
		return nil, fault.New(fault.ValidationError, "tenant: must not be empty")
	}
	outcome, err := h.s.seam.Exercise(ctx, req.GetTenant(), req.GetBody())
	if err != nil {
		return nil, err
	}
	return &acceptorv1.ExerciseResponse{Outcome: outcome}, nil
}
