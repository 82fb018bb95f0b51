package engine

import (
	"context"
	"encoding/json"

	"golang.org/x/sync/errgroup"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
)

// assigneeReads limits the concurrent reads of assignees of one list.
const assigneeReads = 16

func errNoAssignees() error {
	return fault.New(fault.CapabilityNotProvided, "this host does not store assignees")
}

// AssignInterrupt assigns the open question of a node. The audit log names who assigned it.
func (s *Service) AssignInterrupt(ctx context.Context, req *hostv1.AssignInterruptRequest) (*hostv1.AssignInterruptResponse, error) {
	if s.deps.Assignees == nil {
		return nil, errNoAssignees()
	}
	p := auth.From(ctx)
	assignee := p.Subject()
	if req.Assignee != nil {
		assignee = req.GetAssignee()
	}
	if !auth.IsName(assignee) {
		return nil, fault.InvalidBody("/assignee", "want a user or the id of a key: %s", auth.NameRule())
	}
	q, err := s.openQuestion(ctx, req.GetRunId(), req.GetNodeId())
	if err != nil {
		return nil, err
	}
	if req.InterruptId != nil && req.GetInterruptId() != q.interruptID {
		return nil, fault.New(fault.InterruptResolved, "the node does not ask this question any more; read its open question")
	}
	if assignee, err = s.redactReason(ctx, q.runID, assignee); err != nil {
		return nil, err
	}
	a := assignment{Assignee: assignee, By: p.Subject(), At: wire.FormatTime(s.deps.Clock())}
	stored, changed, err := s.deps.Assignees.assign(ctx, q, a, req.GetReplace())
	if err != nil {
		return nil, err
	}
	if changed || stored.By == a.By { // a call that ended before its entry is repeated
		if err := s.recordAssignment(ctx, "interrupt.assigned", q, req.GetNodeId(), assignee); err != nil {
			return nil, err
		}
	}
	return &hostv1.AssignInterruptResponse{InterruptId: q.interruptID, Assignment: interruptAssignment(stored)}, nil
}

// ReleaseInterrupt removes the assignee of the open question of a node.
func (s *Service) ReleaseInterrupt(ctx context.Context, req *hostv1.ReleaseInterruptRequest) (*hostv1.ReleaseInterruptResponse, error) {
	if s.deps.Assignees == nil {
		return nil, errNoAssignees()
	}
	q, err := s.openQuestion(ctx, req.GetRunId(), req.GetNodeId())
	if err != nil {
		return nil, err
	}
	return &hostv1.ReleaseInterruptResponse{}, s.deps.Assignees.release(ctx, q, func(had string) error {
		return s.recordAssignment(ctx, "interrupt.released", q, req.GetNodeId(), had)
	})
}

// openQuestion returns the open question of a node of the caller's tenant.
func (s *Service) openQuestion(ctx context.Context, runID, nodeID string) (question, error) {
	if err := checkRunID(runID); err != nil {
		return question{}, err
	}
	tenant := auth.From(ctx).Tenant
	asked, err := s.deps.Dispatcher.GetInterrupt(ctx, &dispatcherv1.GetInterruptRequest{Tenant: tenant, RunId: runID, NodeId: nodeID})
	switch {
	case err != nil:
		return question{}, err
	case asked.GetGone():
		return question{}, fault.New(fault.InterruptGone, "the run has ended; the question needs no assignee")
	case asked.GetResolved():
		return question{}, fault.New(fault.InterruptResolved, "the question is answered; it needs no assignee")
	}
	return question{tenant: tenant, runID: runID, interruptID: asked.GetInterruptId()}, nil
}

func (s *Service) recordAssignment(ctx context.Context, action string, q question, nodeID, assignee string) error {
	return s.recordAudit(ctx, action, "runs/"+q.runID, map[string]any{
		"nodeId": nodeID, "interruptId": q.interruptID, "assignee": assignee,
	})
}

func interruptAssignment(a assignment) *hostv1.InterruptAssignment {
	return &hostv1.InterruptAssignment{Assignee: a.Assignee, AssignedBy: a.By, AssignedAt: a.At}
}

// assignments returns the assignments of open questions, in their order; without an assignee for
// answered questions, and for those whose assignee could not be read, which the error is about.
func (s *Service) assignments(ctx context.Context, tenant string, list []*eventlogv1.OpenInterrupt) ([]assignment, error) {
	out := make([]assignment, len(list))
	if s.deps.Assignees == nil {
		return out, nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(assigneeReads)
	for n, i := range list {
		var shown runstate.OpenInterrupt
		if i.GetAnswer() != nil || json.Unmarshal(i.GetInterrupt(), &shown) != nil || shown.InterruptID == "" {
			continue
		}
		g.Go(func() (err error) {
			out[n], _, err = s.deps.Assignees.get(ctx, question{tenant: tenant, runID: i.GetRunId(), interruptID: shown.InterruptID})
			return err
		})
	}
	return out, g.Wait()
}

// selectsAssignee reports whether a request selects questions by their assignees.
func selectsAssignee(req *hostv1.ListInterruptsRequest) bool {
	return req.Assignee != nil || req.GetMine() || req.GetUnassigned()
}

// wants reports whether a request selects a question with this assignee; empty means none.
func wants(req *hostv1.ListInterruptsRequest, p *auth.Principal, assignee string) bool {
	return (req.Assignee == nil || assignee == req.GetAssignee()) &&
		(!req.GetMine() || assignee == p.Subject()) &&
		(!req.GetUnassigned() || assignee == "")
}
