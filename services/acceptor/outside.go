package acceptor

import (
	"context"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	runlogv1 "waybill.dev/waybill/proto/gen/go/waybill/runlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/opened"
)

// This file serves executors outside the host: those that follow no run's log.

// maxRaces bounds how often an envelope is tried again after somebody else's
// append to its run.
const maxRaces = 64

// atHead runs an envelope through the pipeline at the head of its run, wherever
// that is by now. What was recorded meanwhile under its correlationId is found
// by the dedup step.
func (s *Service) atHead(ctx context.Context, in accept.Request) (*accept.Result, error) {
	for range maxRaces {
		now, err := s.ledger.Standing(ctx, in.Run)
		if err != nil {
			return nil, err
		}
		in.Head = now.Head
		switch {
		case now.Ended:
			return s.pipeline.Recall(ctx, in)
		case now.Opened && in.Head.Next == 0:
			return nil, errNotStarted()
		}
		// After the head was read, each time anew: what others have asked meanwhile
		// counts, or makes the append fail.
		at, err := s.counted(ctx, in)
		if err != nil {
			return nil, err
		}
		at.Registration = now.Registration
		at.Registration.Told = in.Registration.Told
		at.Untrusted = now.Boundary == wire.Untrusted // nobody here has followed any taint
		res, err := s.pipeline.Run(ctx, at)
		if fault.CodeOf(err) != fault.Conflict {
			return res, err
		}
	}
	return nil, fault.New(fault.ServiceUnavailable, "others append to the run all the time; try again").After(retryAfter)
}

// errNotStarted is about a run whose opener was lost before run.started, which is the
// first event of every run.
func errNotStarted() error {
	return fault.New(fault.RunNotFound, "the run is not open yet: whoever opened it was lost; OpenRun again")
}

// counted takes the number of clarification requests from the log if it knows
// of more than the caller does.
func (s *Service) counted(ctx context.Context, in accept.Request) (accept.Request, error) {
	if !accept.Mentions(in.Document, accept.KindClarificationRequest) {
		return in, nil
	}
	kind, correlationID := accept.Peek(in.Document)
	if kind != accept.KindClarificationRequest {
		return in, nil
	}
	n, err := s.ledger.Clarifications(ctx, in.Run, in.NodeID, correlationID)
	if err != nil {
		return in, err
	}
	c := *in.Counters.ClarificationRounds
	c.Current = max(c.Current, n)
	in.Counters.ClarificationRounds = &c
	return in, nil
}

// OpenRun begins a run of an executor outside.
func (h handler) OpenRun(ctx context.Context, req *acceptorv1.OpenRunRequest) (*acceptorv1.OpenRunResponse, error) {
	run, err := runOf(req.GetRun())
	if err != nil {
		return nil, err
	}
	boundary, err := boundaryOf(req.GetTrustBoundary())
	if err != nil {
		return nil, err
	}
	if tp := req.GetTraceparent(); tp != "" && !wire.ValidTraceparent(tp) {
		return nil, fault.New(fault.ValidationError, "traceparent: needs the form 00-<32 hex>-<16 hex>-<2 hex>, or nothing")
	}
	head, err := h.s.runs.Open(ctx, run, opened.Opening{
		Boundary: boundary, Traceparent: req.GetTraceparent(), NoSecrets: req.GetNoSecrets(), NoTenantSecrets: req.GetNoTenantSecrets(),
	})
	if err != nil {
		return nil, err
	}
	return &acceptorv1.OpenRunResponse{Head: headOf(head)}, nil
}

// CloseRun ends a run of an executor outside.
func (h handler) CloseRun(ctx context.Context, req *acceptorv1.CloseRunRequest) (*acceptorv1.CloseRunResponse, error) {
	run, err := runOf(req.GetRun())
	if err != nil {
		return nil, err
	}
	head, err := h.s.runs.Close(ctx, run, opened.Ending{
		Status: wire.Status(req.GetStatus()), Code: req.GetErrorCode(), Message: req.GetMessage(), Told: req.GetRegistrations(),
	})
	if err != nil {
		return nil, err
	}
	return &acceptorv1.CloseRunResponse{Head: headOf(head)}, nil
}

func runOf(ref *runlogv1.RunRef) (subject.Run, error) {
	run := subject.Run{Tenant: ref.GetTenant(), WorkflowID: ref.GetWorkflowId(), RunID: ref.GetRunId()}
	if !subject.Token(run.Tenant) || !subject.Token(run.WorkflowID) || !subject.Token(run.RunID) {
		return run, fault.New(fault.ValidationError, "run: tenant, workflow_id and run_id are required, each of letters, digits, _ and -")
	}
	return run, nil
}

func boundaryOf(s string) (wire.Trust, error) {
	switch t := wire.Trust(s); t {
	case "", wire.Trusted, wire.Untrusted:
		return t, nil
	default:
		return "", fault.New(fault.ValidationError, "trust_boundary: needs trusted or untrusted")
	}
}

func headOf(h frame.Head) *runlogv1.Head {
	return &runlogv1.Head{Pos: h.Pos, Hash: h.Hash, Next: int32(h.Next)} //nolint:gosec // G115: a run has far fewer events
}
