package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/interrupttoken"
)

// Tokens makes and reads the tokens of interrupts.
type Tokens interface {
	Sign(c interrupttoken.Claims) (string, error)
	Open(text string, use interrupttoken.Intent, now time.Time) (interrupttoken.Claims, error)
}

// interruptHeader is the header with the id of the question that the caller has read. The protocol
// closes the body.
const interruptHeader = "Waybill-Interrupt-Id"

// ResolveInterruptByRun answers the interrupt of a node (OpenWOP host contract §6.4).
func (s *Service) ResolveInterruptByRun(ctx context.Context, req *openwopv1.ResolveInterruptByRunRequest) (*openwopv1.ResolveInterruptByRunResponse, error) {
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	seen, given := metaValue(ctx, MetaInterrupt)
	if given && seen == "" {
		return nil, fault.InvalidHeader(interruptHeader, "want the interruptId of the question, or leave the header out")
	}
	p := auth.From(ctx)
	res, err := s.resolve(ctx, &dispatcherv1.ResolveInterruptRequest{
		Tenant: p.Tenant, RunId: req.GetRunId(), NodeId: req.GetNodeId(), InterruptId: seen, Principal: p.KeyID,
		User: p.User, Groups: p.Groups, Roles: p.Roles,
	}, req.GetResumeValue())
	if err != nil {
		return nil, err
	}
	return &openwopv1.ResolveInterruptByRunResponse{
		RunId: req.GetRunId(), NodeId: res.GetNodeId(), Status: res.GetStatus(), Interrupt: interruptResult(res),
	}, nil
}

// ResolveInterruptByToken answers the interrupt of a token.
func (s *Service) ResolveInterruptByToken(ctx context.Context, req *openwopv1.ResolveInterruptByTokenRequest) (*openwopv1.ResolveInterruptByTokenResponse, error) {
	c, err := s.deps.Tokens.Open(req.GetToken(), interrupttoken.Resolve, s.deps.Clock())
	if err != nil {
		return nil, err
	}
	res, err := s.resolve(ctx, &dispatcherv1.ResolveInterruptRequest{
		Tenant: c.Tenant, RunId: c.RunID, NodeId: c.NodeID, InterruptId: c.InterruptID, Principal: byToken, ByToken: true,
	}, req.GetResumeValue())
	if err != nil {
		return nil, err
	}
	return &openwopv1.ResolveInterruptByTokenResponse{
		RunId: c.RunID, NodeId: res.GetNodeId(), Status: res.GetStatus(), Interrupt: interruptResult(res),
	}, nil
}

// CheckToken returns an error for what is no token of this host. It needs nothing but the
// token, so it can be checked before a body is read. Other reasons against a token are found
// later: a repeated request gets its first answer, even after the token has expired.
func (s *Service) CheckToken(text string) error {
	if _, err := s.deps.Tokens.Open(text, interrupttoken.Inspect, s.deps.Clock()); fault.CodeOf(err) == fault.InterruptNotFound {
		return err
	}
	return nil
}

// byToken is the principal recorded for the holder of a token.
const byToken = "token"

func (s *Service) resolve(ctx context.Context, req *dispatcherv1.ResolveInterruptRequest, value *openwopv1.JsonDocument) (*dispatcherv1.ResolveInterruptResponse, error) {
	if len(value.GetJson()) == 0 {
		return nil, fault.InvalidBody("/resumeValue", "required: the answer")
	}
	req.ResumeValue = value.GetJson()
	reason, err := s.overrideReason(ctx, req)
	if err != nil {
		return nil, err
	}
	find := &dispatcherv1.GetInterruptRequest{Tenant: req.GetTenant(), RunId: req.GetRunId(), NodeId: req.GetNodeId()}
	if req.GetByToken() {
		find.InterruptId = req.GetInterruptId()
	}
	asked, err := s.deps.Dispatcher.GetInterrupt(ctx, find)
	if err != nil {
		return nil, err
	}
	if seen := req.GetInterruptId(); seen != "" && seen != asked.GetInterruptId() {
		return nil, fault.New(fault.InterruptResolved,
			"the node does not ask the question of %s any more; read its open question before you answer", interruptHeader)
	}
	req.InterruptId = asked.GetInterruptId() // the answer must not apply to a later question of the node
	open := !asked.GetResolved() && !asked.GetGone()
	if open { // only then can the answer take effect
		if err := s.recordAttempt(ctx, req, reason); err != nil {
			return nil, err
		}
	}
	res, err := s.deps.Dispatcher.ResolveInterrupt(ctx, req)
	if err != nil {
		if open {
			s.recordRefusal(ctx, req, err)
		}
		return nil, err
	}
	return res, s.recordAnswer(ctx, req, res, reason)
}

// overrideReason returns the redacted reason of an override. It is checked first, so that no
// override takes effect whose reason cannot be stored.
func (s *Service) overrideReason(ctx context.Context, req *dispatcherv1.ResolveInterruptRequest) (string, error) {
	reason, ok := interrupt.Overrides(req.GetResumeValue())
	if !ok || req.GetByToken() {
		return "", nil
	}
	return s.redactReason(ctx, req.GetRunId(), reason)
}

// interruptResult converts the outcome of an answer.
func interruptResult(res *dispatcherv1.ResolveInterruptResponse) *openwopv1.InterruptResult {
	out := &openwopv1.InterruptResult{Kind: res.GetKind()}
	if res.GetOutcome() != "" {
		out.Outcome = &res.Outcome
	}
	if v := res.GetVotes(); v != nil {
		out.Accepts, out.Rejects, out.Required = &v.Accepts, &v.Rejects, &v.Required
	}
	return out
}

// InspectInterruptByToken returns the interrupt of a token and changes nothing.
func (s *Service) InspectInterruptByToken(ctx context.Context, req *openwopv1.InspectInterruptByTokenRequest) (*openwopv1.InspectInterruptByTokenResponse, error) {
	c, err := s.deps.Tokens.Open(req.GetToken(), interrupttoken.Inspect, s.deps.Clock())
	if err != nil {
		return nil, err
	}
	res, err := s.deps.Dispatcher.GetInterrupt(ctx, &dispatcherv1.GetInterruptRequest{
		Tenant: c.Tenant, RunId: c.RunID, NodeId: c.NodeID, InterruptId: c.InterruptID,
	})
	if err != nil {
		return nil, err
	}
	doc := map[string]json.RawMessage{}
	if err := json.Unmarshal(res.GetPayload(), &doc); err != nil {
		return nil, err
	}
	for name, v := range map[string]any{
		"requestedAt": res.GetRequestedAt(),
		"expiresAt":   wire.FormatTime(c.ExpiresAt),
		"resolved":    res.GetResolved() || res.GetGone(),
	} {
		if doc[name], err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	if v := res.GetVotes(); v != nil {
		if doc["votes"], err = json.Marshal(progress(v)); err != nil {
			return nil, err
		}
	}
	out, err := json.Marshal(doc)
	setMeta(ctx, MetaCache, "no-store")
	return &openwopv1.InspectInterruptByTokenResponse{Interrupt: &openwopv1.JsonDocument{Json: out}}, err
}

// progress converts the state of a vote.
func progress(v *dispatcherv1.Votes) interrupt.Progress {
	return interrupt.Progress{Accepts: int(v.GetAccepts()), Rejects: int(v.GetRejects()), Required: int(v.GetRequired())}
}

// tokenTenant is the tenant for idempotency records of a token's holder, who is known by the
// token only.
func tokenTenant(token string) string {
	sum := sha256.Sum256([]byte(token))
	return "=token:" + hex.EncodeToString(sum[:])
}
