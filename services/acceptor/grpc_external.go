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
	"waybill.dev/waybill/services/acceptor/external"
)

// This file serves external executors, which do not follow their run's log.

// maxAppendAttempts limits the attempts to record an envelope while other writers
// append to its run.
const maxAppendAttempts = 64

// acceptAtLatestHead runs an envelope through the pipeline at the current head of its
// run. If the envelope was recorded before that head, the dedup step finds it.
func (s *Service) acceptAtLatestHead(ctx context.Context, in accept.Request) (*accept.Result, error) {
	for range maxAppendAttempts {
		now, err := s.ledger.RunInfo(ctx, in.Run)
		if err != nil {
			return nil, err
		}
		in.Head = now.Head
		switch {
		case now.Ended:
			return s.pipeline.Lookup(ctx, in)
		case now.External && in.Head.Next == 0:
			return nil, errNotStarted()
		}
		// Count again for each head: a clarification request recorded before the head
		// counts, and one recorded after it makes the append fail.
		at, err := s.withLoggedClarifications(ctx, in)
		if err != nil {
			return nil, err
		}
		at.Registration = now.Registration
		at.Registration.Told = in.Registration.Told
		at.NoConversation = !now.External
		at.Untrusted = now.Boundary == wire.Untrusted // this host has not tracked the taint
		res, err := s.pipeline.Run(ctx, at)
		if fault.CodeOf(err) != fault.Conflict {
			return res, err
		}
	}
	return nil, fault.New(fault.ServiceUnavailable, "too many concurrent appends to the run; try again").After(retryAfter)
}

// errNotStarted reports a run without run.started, the first event of every run: its
// OpenRun did not complete.
func errNotStarted() error {
	return fault.New(fault.RunNotFound, "the run is not open: its OpenRun did not complete; call OpenRun again")
}

// withLoggedClarifications raises the caller's count of clarification requests to the
// number in the log.
func (s *Service) withLoggedClarifications(ctx context.Context, in accept.Request) (accept.Request, error) {
	if !accept.MayBeKind(in.Document, accept.KindClarificationRequest) {
		return in, nil
	}
	kind, correlationID := accept.Peek(in.Document)
	if kind != accept.KindClarificationRequest {
		return in, nil
	}
	n, err := s.ledger.CountClarifications(ctx, in.Run, in.NodeID, correlationID)
	if err != nil {
		return in, err
	}
	c := *in.Counters.ClarificationRounds
	c.Current = max(c.Current, n)
	in.Counters.ClarificationRounds = &c
	return in, nil
}

// OpenRun starts a run of an external executor.
func (h handler) OpenRun(ctx context.Context, req *acceptorv1.OpenRunRequest) (*acceptorv1.OpenRunResponse, error) {
	run, err := parseRun(req.GetRun())
	if err != nil {
		return nil, err
	}
	boundary, err := parseBoundary(req.GetTrustBoundary())
	if err != nil {
		return nil, err
	}
	if tp := req.GetTraceparent(); tp != "" && !wire.ValidTraceparent(tp) {
		return nil, fault.New(fault.ValidationError, "traceparent: must have the form 00-<32 hex>-<16 hex>-<2 hex>, or be empty")
	}
	head, err := h.s.runs.Open(ctx, run, external.OpenOptions{
		Boundary:        boundary,
		Traceparent:     req.GetTraceparent(),
		NoSecrets:       req.GetNoSecrets(),
		NoTenantSecrets: req.GetNoTenantSecrets(),
	})
	if err != nil {
		return nil, err
	}
	return &acceptorv1.OpenRunResponse{Head: protoHead(head)}, nil
}

// CloseRun ends a run of an external executor.
func (h handler) CloseRun(ctx context.Context, req *acceptorv1.CloseRunRequest) (*acceptorv1.CloseRunResponse, error) {
	run, err := parseRun(req.GetRun())
	if err != nil {
		return nil, err
	}
	head, err := h.s.runs.Close(ctx, run, external.CloseOptions{
		Status:        wire.Status(req.GetStatus()),
		Code:          req.GetErrorCode(),
		Message:       req.GetMessage(),
		Registrations: req.GetRegistrations(),
	})
	if err != nil {
		return nil, err
	}
	return &acceptorv1.CloseRunResponse{Head: protoHead(head)}, nil
}

func parseRun(ref *runlogv1.RunRef) (subject.Run, error) {
	run := subject.Run{Tenant: ref.GetTenant(), WorkflowID: ref.GetWorkflowId(), RunID: ref.GetRunId()}
	if !subject.Token(run.Tenant) || !subject.Token(run.WorkflowID) || !subject.Token(run.RunID) {
		return run, fault.New(fault.ValidationError, "run: tenant, workflow_id and run_id are required, each of letters, digits, _ and -")
	}
	return run, nil
}

func parseBoundary(s string) (wire.Trust, error) {
	switch t := wire.Trust(s); t {
	case "", wire.Trusted, wire.Untrusted:
		return t, nil
	default:
		return "", fault.New(fault.ValidationError, "trust_boundary: must be trusted or untrusted")
	}
}

func protoHead(h frame.Head) *runlogv1.Head {
	return &runlogv1.Head{Pos: h.Pos, Hash: h.Hash, Next: int32(h.Next)} //nolint:gosec // G115: a run has far fewer events
}
