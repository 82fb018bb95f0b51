package engine

import (
	"context"
	"encoding/json"
	"slices"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/services/gateway/auth"
)

// ListInterrupts lists the open interrupts of the tenant's runs, or those answered on a day. It
// returns no tokens: the caller has a credential to answer with.
func (s *Service) ListInterrupts(ctx context.Context, req *hostv1.ListInterruptsRequest) (*hostv1.ListInterruptsResponse, error) {
	limit, err := pageSize(req.Limit)
	if err != nil {
		return nil, err
	}
	if req.Kind != nil && !slices.Contains(interrupt.Kinds(), interrupt.Kind(req.GetKind())) {
		return nil, fault.OneOf("kind", interrupt.Kinds())
	}
	p := auth.From(ctx)
	res, err := s.deps.EventLog.ListInterrupts(ctx, &eventlogv1.ListInterruptsRequest{
		Tenant: p.Tenant, Limit: limit, Cursor: req.GetCursor(), WorkflowId: req.GetWorkflowId(), Kind: req.GetKind(),
		AnsweredOn: req.GetAnsweredOn(),
	})
	if err != nil {
		return nil, err
	}
	assigned, err := s.assignments(ctx, p.Tenant, res.GetInterrupts())
	if err != nil && selectsAssignee(req) {
		return nil, err
	}
	who := responder(p)
	out := &hostv1.ListInterruptsResponse{NextCursor: stringOrNil(res.GetNextCursor())}
	for n, i := range res.GetInterrupts() {
		admitted := mayAnswer(i.GetInterrupt(), who)
		if req.GetEligible() && !admitted || !wants(req, p, assigned[n].Assignee) {
			continue
		}
		shown := &hostv1.OpenInterrupt{RunId: i.GetRunId(), WorkflowId: i.GetWorkflowId(), Status: i.GetStatus()}
		if a := i.GetAnswer(); a != nil {
			shown.Interrupt, shown.Answer = &openwopv1.JsonDocument{Json: i.GetInterrupt()}, interruptAnswer(a)
		} else {
			shown.Interrupt, shown.Answerable = &openwopv1.JsonDocument{Json: s.withVotes(ctx, p.Tenant, i)}, admitted
		}
		if assigned[n].Assignee != "" {
			shown.Assignment = interruptAssignment(assigned[n])
		}
		out.Interrupts = append(out.Interrupts, shown)
	}
	return out, nil
}

func responder(p *auth.Principal) interrupt.Responder {
	return interrupt.Responder{Principal: p.KeyID, User: p.User, Groups: p.Groups, Roles: p.Roles}
}

func interruptAnswer(a *eventlogv1.InterruptAnswer) *hostv1.InterruptAnswer {
	out := &hostv1.InterruptAnswer{At: a.GetAt(), By: stringOrNil(a.GetBy()), Action: stringOrNil(a.GetOutcome())}
	if len(a.GetValue()) > 0 {
		out.Value = &openwopv1.JsonDocument{Json: a.GetValue()}
	}
	return out
}

// CountInterrupts counts the open interrupts of the tenant's runs.
func (s *Service) CountInterrupts(ctx context.Context, _ *hostv1.CountInterruptsRequest) (*hostv1.CountInterruptsResponse, error) {
	p := auth.From(ctx)
	res, err := s.deps.EventLog.CountInterrupts(ctx, &eventlogv1.CountInterruptsRequest{
		Tenant: p.Tenant, Principal: p.KeyID, User: p.User, Groups: p.Groups, Roles: p.Roles,
	})
	if err != nil {
		return nil, err
	}
	return &hostv1.CountInterruptsResponse{
		Open: res.GetOpen(), Answerable: res.GetAnswerable(), DueSoon: res.GetDueSoon(), Truncated: !res.GetComplete(),
	}, nil
}

// withVotes adds the state of a vote to a question. Votes that do not decide yet are not
// events, so the read model does not have them. The dispatcher is called only for questions
// that need several votes. If the call fails, the question is returned without votes.
func (s *Service) withVotes(ctx context.Context, tenant string, i *eventlogv1.OpenInterrupt) []byte {
	var shown runstate.OpenInterrupt
	if json.Unmarshal(i.GetInterrupt(), &shown) != nil {
		return i.GetInterrupt()
	}
	q := interrupt.Pending{Request: shown.Payload}
	if q.Progress() == nil {
		return i.GetInterrupt()
	}
	res, err := s.deps.Dispatcher.GetInterrupt(ctx, &dispatcherv1.GetInterruptRequest{
		Tenant: tenant, RunId: i.GetRunId(), NodeId: shown.NodeID, InterruptId: shown.InterruptID,
	})
	if err != nil || res.GetVotes() == nil {
		return i.GetInterrupt()
	}
	doc, err := json.Marshal(struct {
		runstate.OpenInterrupt
		Votes interrupt.Progress `json:"votes"`
	}{shown, progress(res.GetVotes())})
	if err != nil {
		return i.GetInterrupt()
	}
	return doc
}

// mayAnswer reports whether a caller may answer a question.
func mayAnswer(shown []byte, who interrupt.Responder) bool {
	var i runstate.OpenInterrupt
	if json.Unmarshal(shown, &i) != nil {
		return false
	}
	q := interrupt.Pending{Request: i.Payload, NodeID: i.NodeID, InterruptID: i.InterruptID, Escalated: i.Escalation}
	return q.Admits(who)
}
