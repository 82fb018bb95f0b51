package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"waybill.dev/waybill/internal/runlog"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/create"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/node/media"
	"waybill.dev/waybill/services/dispatcher/prompt"
)

// StartRun creates a run.
func (s *Service) StartRun(ctx context.Context, req *dispatcherv1.StartRunRequest) (*dispatcherv1.StartRunResponse, error) {
	leave, err := s.intake.Enter(s.parked(req.GetTenant()))
	if err != nil {
		return nil, err
	}
	defer leave()
	c, err := s.starter.Start(ctx, create.Request{
		Tenant:       req.GetTenant(),
		Principal:    req.GetPrincipal(),
		WorkflowID:   req.GetWorkflowId(),
		RunID:        req.GetRunId(),
		Digest:       req.GetRequestDigest(),
		Inputs:       req.GetInputs(),
		Configurable: req.GetConfigurable(),
		Metadata:     req.GetMetadata(),
		Tags:         req.GetTags(),
		ScopeID:      req.GetScopeId(),
		CallbackURL:  req.GetCallbackUrl(),
		Transport:    req.GetTransport(),
		Dedup:        req.GetDedup(),
		TestKey:      req.GetTestKey(),
		Traceparent:  req.GetTraceparent(),
	})
	if err != nil {
		return nil, s.unlessLoading(err)
	}
	return &dispatcherv1.StartRunResponse{
		RunId:        c.RunID,
		WorkflowId:   c.WorkflowID,
		Status:       string(wire.StatusPending),
		Replayed:     c.Replayed,
		BeginDelayMs: s.beginDelay(),
	}, nil
}

// beginDelay is the current time from a run's delivery to its first step, in milliseconds.
func (s *Service) beginDelay() int64 { return s.begins.Mean(s.deps.Clock()).Milliseconds() }

// CancelRun ends a run.
func (s *Service) CancelRun(ctx context.Context, req *dispatcherv1.CancelRunRequest) (*dispatcherv1.CancelRunResponse, error) {
	st, already, err := s.executor.Cancel(ctx, req.GetTenant(), req.GetRunId(), req.GetReason(), req.GetCancelledBy())
	if err != nil {
		return nil, s.logFault(err)
	}
	return &dispatcherv1.CancelRunResponse{Status: string(st.Status), AlreadyTerminal: already}, nil
}

// retryUnavailable is the retry hint after a failed append.
const retryUnavailable = 3 * time.Second

// logFault maps errors of the log: unavailable, damaged, or a change that is too large.
func (s *Service) logFault(err error) error {
	if errors.Is(err, runlog.ErrUnavailable) {
		return fault.New(fault.ServiceUnavailable, "the run log is unavailable; try again").After(retryUnavailable).Wrap(err)
	}
	if large, ok := errors.AsType[*runlog.TooLargeError](err); ok {
		return fault.New(fault.PayloadTooLarge, "the request would append %d bytes to the run log; the limit is %d", large.Size, large.Limit).
			With("sizeBytes", large.Size).With("limitBytes", large.Limit).Wrap(err)
	}
	if _, mapped := fault.As(err); !mapped && errors.Is(err, frame.ErrDamaged) {
		return fault.Damaged().Wrap(err)
	}
	return err
}

// PauseRun stops a run until it is resumed.
func (s *Service) PauseRun(ctx context.Context, req *dispatcherv1.PauseRunRequest) (*dispatcherv1.PauseRunResponse, error) {
	at, err := s.executor.Pause(ctx, req.GetTenant(), req.GetRunId(), wire.DrainPolicy(req.GetDrainPolicy()), req.GetReason(), req.GetPausedBy())
	return &dispatcherv1.PauseRunResponse{PausedAt: at}, s.logFault(err)
}

// ResumeRun continues a paused run.
func (s *Service) ResumeRun(ctx context.Context, req *dispatcherv1.ResumeRunRequest) (*dispatcherv1.ResumeRunResponse, error) {
	at, err := s.executor.Resume(ctx, req.GetTenant(), req.GetRunId(), req.GetReason())
	return &dispatcherv1.ResumeRunResponse{ResumedAt: at}, s.logFault(err)
}

// RedactTexts removes secrets from texts about a run. It fails without the redactor or the run's
// registered secrets, because such a text must not be stored.
func (s *Service) RedactTexts(ctx context.Context, req *dispatcherv1.RedactTextsRequest) (*dispatcherv1.RedactTextsResponse, error) {
	out, err := s.executor.RedactTexts(ctx, req.GetTenant(), req.GetRunId(), req.GetTexts())
	if err != nil {
		return nil, redactorFault(err)
	}
	return &dispatcherv1.RedactTextsResponse{Texts: out}, nil
}

// redactorFault reports that nothing was stored because the redactor is unavailable.
func redactorFault(err error) error {
	return fault.New(fault.ServiceUnavailable, "the redactor is unavailable, and nothing was stored; try again").After(time.Second).Wrap(err)
}

// ResolveInterrupt resolves an interrupt with an answer.
func (s *Service) ResolveInterrupt(ctx context.Context, req *dispatcherv1.ResolveInterruptRequest) (*dispatcherv1.ResolveInterruptResponse, error) {
	r, err := s.executor.Resolve(ctx, req.GetTenant(), req.GetRunId(), engine.Answer{
		NodeID: req.GetNodeId(), InterruptID: req.GetInterruptId(), ByToken: req.GetByToken(),
		Answer: interrupt.Answer{Value: req.GetResumeValue(), By: responder(req)},
	})
	if err != nil {
		return nil, s.logFault(err)
	}
	out := &dispatcherv1.ResolveInterruptResponse{
		NodeId: r.NodeID, Status: string(r.Status), Kind: string(r.Kind), Outcome: string(r.Decision.Outcome),
	}
	if s := r.Decision.Standing; s != nil {
		out.Standing = &dispatcherv1.Standing{Listed: s.Listed, Groups: s.Groups, Roles: s.Roles, Override: s.Override}
	}
	out.Votes = votes(r.Decision.Progress)
	return out, nil
}

// votes converts the progress of an approval; nil for nil.
func votes(p *interrupt.Progress) *dispatcherv1.Votes {
	if p == nil {
		return nil
	}
	return &dispatcherv1.Votes{Accepts: int32(p.Accepts), Rejects: int32(p.Rejects), Required: int32(p.Required)} //nolint:gosec // G115: small counts
}

func responder(req *dispatcherv1.ResolveInterruptRequest) interrupt.Responder {
	return interrupt.Responder{
		Principal: req.GetPrincipal(),
		User:      req.GetUser(),
		Groups:    req.GetGroups(),
		Roles:     req.GetRoles(),
	}
}

// GetInterrupt returns the open or latest interrupt of a node.
func (s *Service) GetInterrupt(ctx context.Context, req *dispatcherv1.GetInterruptRequest) (*dispatcherv1.GetInterruptResponse, error) {
	q, ended, err := s.executor.Interrupt(ctx, req.GetTenant(), req.GetRunId(), req.GetNodeId(), req.GetInterruptId())
	if err != nil {
		return nil, s.logFault(err)
	}
	payload, err := json.Marshal(q.Request)
	out := &dispatcherv1.GetInterruptResponse{
		Payload:     payload,
		InterruptId: q.InterruptID,
		RequestedAt: q.RequestedAt,
		Resolved:    q.Resolved,
		Gone:        ended && !q.Resolved,
	}
	if e := q.Escalated; e != nil {
		out.Level, out.EscalatedAt = int32(e.Level), e.At //nolint:gosec // G115: a few levels
	}
	out.Votes = votes(q.Progress())
	return out, err
}

// Describe returns what this dispatcher can execute.
func (s *Service) Describe(context.Context, *dispatcherv1.DescribeRequest) (*dispatcherv1.DescribeResponse, error) {
	out := &dispatcherv1.DescribeResponse{
		Providers:            s.deps.Providers.IDs(),
		Byok:                 s.byok(),
		ReasoningDirective:   string(s.cfg.Completion.Directive),
		SelfHosted:           s.cfg.SelfHosted,
		MockProviders:        s.deps.Seams.MockProviders(),
		MaxNodeExecutions:    int32(s.cfg.Limits.MaxNodeExecutions), //nolint:gosec // G115: a small limit
		MaxRunDurationMs:     s.cfg.Limits.MaxDuration.Milliseconds(),
		MaxRetryAttempts:     int32(s.cfg.Completion.MaxAttempts), //nolint:gosec // G115: at most 16
		TruncationMultiplier: int32(s.cfg.Completion.Multiplier),  //nolint:gosec // G115: at most 8
		RefusesSubstitution:  s.cfg.Completion.RefusesSubstitution,
	}
	out.RuntimeCapabilities = slices.Sorted(slices.Values(s.cfg.RuntimeCapabilities))
	if s.deps.Cleartext != nil {
		out.MaskingMode = string(node.Mask)
	}
	if !s.prompts.Library.Empty() || s.prompts.AllCalls && s.prompts.Observability != prompt.Off {
		out.Prompts = s.promptSupport()
	}
	types := s.types.Current()
	for _, id := range types.IDs() {
		t := types[id]
		described := &dispatcherv1.NodeType{TypeId: id, Source: t.Source, EmitsEnvelopes: t.EmitsEnvelopes}
		if t.Needs != nil {
			out.GatesModels = true
			described.RequiredModelCapabilities = t.Needs.Required
			if f := t.Needs.Fallback; f != nil {
				described.FallbackProvider, described.FallbackModel = f.Provider, f.Model
			}
			out.ModelCapabilities = s.addAdvertised(out.ModelCapabilities, t.Needs.Required)
		}
		if t.AsksModel() && !s.cfg.NoAIEnvelope { // such nodes require what the parts of their prompts need
			out.GatesModels = true
			out.ModelCapabilities = s.addAdvertised(out.ModelCapabilities, media.Capabilities())
		}
		out.NodeTypes = append(out.NodeTypes, described)
	}
	slices.Sort(out.ModelCapabilities)
	return out, nil
}

// byok returns the providers that accept a tenant's own key: those that use a key, if there is a
// store of keys.
func (s *Service) byok() []string {
	if s.deps.Credentials == nil {
		return nil
	}
	return slices.DeleteFunc(s.deps.Providers.IDs(), func(id string) bool { return !slices.Contains(s.cfg.Keyed, id) })
}

// addAdvertised adds the required capabilities that the default model has. No others may be advertised
// (OpenWOP envelope contract §16.4).
func (s *Service) addAdvertised(list []string, required []modelgate.Capability) []string {
	for _, id := range required {
		if !slices.Contains(list, id) && s.loop.Advertises(id) {
			list = append(list, id)
		}
	}
	return list
}
