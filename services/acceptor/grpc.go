package acceptor

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/internal/rpc"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	runlogv1 "waybill.dev/waybill/proto/gen/go/waybill/runlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// handler implements the gRPC service: decode, call, encode.
type handler struct {
	acceptorv1.UnimplementedAcceptorServer

	s *Service
}

// Accept runs one envelope of a real run through the pipeline. A refusal is an answer,
// not an error.
func (h handler) Accept(ctx context.Context, req *acceptorv1.AcceptRequest) (*acceptorv1.AcceptResponse, error) {
	in, err := h.parseAccept(req)
	if err != nil {
		return nil, err
	}
	leave, err := h.s.large.acquire(ctx, len(in.Document))
	if err != nil {
		return nil, err
	}
	defer leave()
	start := h.s.clock()
	in.Traceparent = rpc.Traceparent(ctx)
	if req.GetModelOutput() {
		in.Document = accept.CompleteModelOutput(in, start)
	}
	run := h.s.acceptAtGivenHead
	if req.GetHead() == nil {
		run = h.s.acceptAtLatestHead
	}
	res, err := run(ctx, in)
	if unregisteredScopes(err) != nil || err == nil && res.Unrecorded() {
		// The redactor forgets a run's secrets when the run ends, so a result that was
		// not recorded may contain them. Run again: an ended run only gets a lookup.
		ended, lerr := h.s.ledger.Ended(ctx, in.Run)
		switch {
		case lerr != nil:
			res, err = nil, lerr
		case ended:
			res, err = run(ctx, in)
		}
	}
	end := h.s.clock()
	h.s.metrics.observe(res, err, end.Sub(start))
	if err != nil {
		return nil, err
	}
	h.s.logAccept(ctx, in.Run, res, end.Sub(start))
	h.s.exportSpan(in.Run, res, start, end)
	return acceptResponse(res), nil
}

// acceptAtGivenHead runs an envelope through the pipeline at the head in the request,
// for a caller that follows the run's log.
func (s *Service) acceptAtGivenHead(ctx context.Context, in accept.Request) (*accept.Result, error) {
	// A cached RunInfo suffices: the run's record never changes, and an append to an
	// ended run fails.
	now, err := s.ledger.RunInfo(ctx, in.Run)
	switch {
	case err != nil:
		return nil, err
	case now.Ended:
		return s.pipeline.Lookup(ctx, in)
	case now.External && in.Head.Next == 0:
		return nil, errNotStarted()
	case now.External && len(in.Preceding) > 0:
		return nil, errPrecedingExternal()
	}
	registrations := in.Registration.Told
	in.Registration, in.Boundary = now.Registration, in.Boundary.Meet(now.Boundary)
	in.Registration.Told = registrations
	in.NoConversation = !now.External // this host has no conversations
	// Dispatchers track the taint of the envelopes they submit. External executors may
	// not, so an untrusted external run stays untrusted.
	in.Untrusted = now.External && now.Boundary == wire.Untrusted
	return s.pipeline.Run(ctx, in)
}

func (h handler) parseAccept(req *acceptorv1.AcceptRequest) (accept.Request, error) {
	run, err := parseRun(req.GetRun())
	if err != nil {
		return accept.Request{}, err
	}
	boundary, err := parseBoundary(req.GetTrustBoundary())
	if err != nil {
		return accept.Request{}, err
	}
	switch {
	case req.GetNodeId() == "":
		return accept.Request{}, fault.Empty("node_id")
	case req.GetQuestionTimeoutMs() < 0:
		return accept.Request{}, fault.New(fault.ValidationError, "question_timeout_ms: must be at least 0")
	case req.GetHead() != nil && (req.GetHead().GetPos() == 0 || req.GetHead().GetNext() < 0):
		return accept.Request{}, fault.New(fault.ValidationError, "head: must be the head of a run that has started")
	}
	part, err := parseAnswerPart(req.GetAnswer())
	if err != nil {
		return accept.Request{}, err
	}
	preceding, err := parsePreceding(req)
	if err != nil {
		return accept.Request{}, err
	}
	in := accept.Request{
		Target: accept.Target{
			Run:  run,
			Head: frame.Head{Pos: req.GetHead().GetPos(), Hash: req.GetHead().GetHash(), Next: int(req.GetHead().GetNext())},
		},
		Document: req.GetEnvelope(), NodeID: req.GetNodeId(), Boundary: boundary,
		Counters: h.s.counters(req), ApprovalContext: req.GetApprovalContext(), Answer: part, Preceding: preceding,
		Registration: wire.Registration{Told: req.GetRegistrations()}, QuestionTimeoutMs: req.GetQuestionTimeoutMs(),
	}
	return in, setContract(&in, req.GetContract())
}

// parseAnswerPart reads which part of a model's answer an envelope is.
func parseAnswerPart(a *acceptorv1.AnswerPart) (wire.AnswerPart, error) {
	p := wire.AnswerPart{Size: int(a.GetSize()), Index: int(a.GetIndex())}
	for _, seq := range a.GetWith() {
		p.With = append(p.With, int(seq))
	}
	switch {
	case p.Size < 0 || p.Index < 0 || p.Index >= max(p.Size, 1):
		return p, fault.New(fault.ValidationError,
			"answer: size must be the number of envelopes in the model's answer, and index the envelope's number, from 0")
	case len(p.With) > p.Index || slices.ContainsFunc(p.With, func(seq int) bool { return seq < 0 }):
		return p, fault.New(fault.ValidationError,
			"answer.with: must be the sequences of the events that record the envelopes before this one, each once")
	}
	return p, nil
}

// setContract adds the node's contract to the request.
func setContract(in *accept.Request, c *acceptorv1.Contract) error {
	if c == nil {
		return nil
	}
	in.Contract, in.Mode = &accept.Contract{Accepts: c.GetAccepts()}, accept.RefusalMode(c.GetRefusalMode())
	if in.Mode != "" && in.Mode != accept.FailNode && in.Mode != accept.DiscardAndWarn {
		return fault.New(fault.ValidationError, "contract.refusal_mode: needs fail-node or discard-and-warn")
	}
	return nil
}

// counters combines the caller's counts with the limits of the host.
func (s *Service) counters(req *acceptorv1.AcceptRequest) accept.Counters {
	l := s.cfg.Limits
	return accept.Counters{
		EnvelopesPerTurn:    &accept.Counter{Current: int(req.GetTurnCount()), Cap: l.EnvelopesPerTurn},
		SchemaRounds:        &accept.Counter{Current: int(req.GetSchemaRounds()), Cap: l.SchemaRounds},
		ClarificationRounds: &accept.Counter{Current: int(req.GetClarificationRounds()), Cap: l.ClarificationRounds},
	}
}

func acceptResponse(res *accept.Result) *acceptorv1.AcceptResponse {
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

// logAccept writes one line per accept, without anything of the payload.
func (s *Service) logAccept(ctx context.Context, run subject.Run, res *accept.Result, took time.Duration) {
	attrs := []slog.Attr{
		slog.String("tenant", run.Tenant), slog.String("run_id", run.RunID),
		slog.String("node_id", res.Attributes.NodeID),
		slog.String("envelope_type", res.Attributes.Kind),
		slog.String("correlation_id", res.Attributes.CorrelationID),
		slog.String("outcome", string(res.Attributes.Outcome)), slog.Bool("recalled", res.Recalled),
		slog.Duration("took", took),
	}
	if res.Attributes.Drift {
		attrs = append(attrs, slog.Bool("envelope_schema_version_drift", true))
	}
	if res.Refusal != nil {
		attrs = append(attrs, slog.String("code", string(res.Refusal.Code)))
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "envelope", attrs...)
}

// exportSpan exports the span of one accept. The span id of an accepted envelope is
// derived, as other services derive it. The span of a refusal has a random id, since
// the envelope may be submitted again. A recalled outcome has its span already.
func (s *Service) exportSpan(run subject.Run, res *accept.Result, start, end time.Time) {
	if s.spans == nil || res.Recalled {
		return
	}
	trace, parent := runspan.TraceOf(run.RunID, res.Attributes.Traceparent)
	span := &runspan.Span{
		Name: runspan.NameAccept, Trace: trace, Parent: parent, Kind: runspan.KindServer, Code: runspan.OK,
		Start: start, End: end, Attributes: res.Attributes.Span(),
	}
	span.Attributes["openwop.run_id"], span.Attributes["openwop.node_id"] = run.RunID, res.Attributes.NodeID
	if res.Refusal == nil {
		span.ID = runspan.AcceptSpan(run.RunID, res.Attributes.CorrelationID)
	} else {
		span.Code, span.Message = runspan.Error, string(res.Refusal.Code)
	}
	s.spans.Accepted(span, runspan.Sampled(res.Attributes.Traceparent))
}

// ListKinds lists the registered kinds and the envelope limits.
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
	if h.s.cfg.NoAIEnvelope {
		return resp, nil
	}
	for _, k := range h.s.registry.All() {
		resp.Kinds = append(resp.Kinds, &acceptorv1.Kind{
			Name: k.Name, Version: int32(k.Version), Schema: k.Schema, Universal: k.Universal, //nolint:gosec // G115: a version has 31 bits
		})
	}
	return resp, nil
}

// Exercise is the test seam.
func (h handler) Exercise(ctx context.Context, req *acceptorv1.ExerciseRequest) (*acceptorv1.ExerciseResponse, error) {
	if err := h.s.checkSeams(req.GetTenant()); err != nil {
		return nil, err
	}
	outcome, err := h.s.seams.Exercise(ctx, req.GetTenant(), req.GetBody())
	if err != nil {
		return nil, err
	}
	return &acceptorv1.ExerciseResponse{Outcome: outcome}, nil
}
