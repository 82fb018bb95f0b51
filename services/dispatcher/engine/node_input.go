package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/view"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
)

// NodeInput computes what a node was given when the last of its attempts started, at or before an
// event; -1 is the last event. It reads what is recorded, and not the clear values of masked runs.
func (e *Executor) NodeInput(
	ctx context.Context, tenant, runID, nodeID string, at int,
) (doc view.NodeInput, in node.Input, err error) {
	err = e.contain(runID, func() error {
		doc, in, err = e.nodeInput(ctx, subject.Run{Tenant: tenant, RunID: runID}, nodeID, at)
		return err
	})
	return doc, in, err
}

func (e *Executor) nodeInput(
	ctx context.Context, r subject.Run, nodeID string, at int,
) (view.NodeInput, node.Input, error) {
	rec, events, err := e.readRun(ctx, r)
	if err != nil {
		return view.NodeInput{}, node.Input{}, err
	}
	s, err := e.nodeAt(ctx, rec, events, nodeID, at)
	if err != nil {
		return view.NodeInput{}, node.Input{}, err
	}
	doc := view.NodeInput{
		RunID: rec.RunID, NodeID: nodeID, TypeID: s.typeID, Sequence: s.sequence,
		Config: s.in.Config, Inputs: s.in.Ports, Untrusted: sortedNames(s.in.UntrustedPorts),
	}
	if bad := s.bad; bad != nil {
		doc.Config, doc.Inputs = json.RawMessage("{}"), map[string]json.RawMessage{}
		doc.Error = &view.Error{Code: bad.Code, Message: bad.Message}
	}
	return doc, s.in, nil
}

// nodeAt is a node when an attempt of it started.
type nodeAt struct {
	typeID   string
	sequence int // of the event that started the attempt
	def      *workflow.Node
	state    *runstate.State // before the attempt
	in       node.Input
	bad      *wire.NodeError // why there is no input
}

// nodeAt computes a node as of the start of its last attempt at or before an event; -1 is the last event.
func (e *Executor) nodeAt(
	ctx context.Context, rec *wire.RunRecord, events []wire.Event, nodeID string, at int,
) (*nodeAt, error) {
	start := lastStart(events, nodeID, at)
	if start < 0 {
		return nil, fault.New(fault.NotFound, "the node has not started in this run")
	}
	st := runstate.Fold(rec, events[:start])
	plan, err := e.loadPlan(ctx, st)
	if fault.CodeOf(err) == fault.WorkflowNotFound {
		err = fault.New(fault.NotFound, "this host has no definition of the run")
	}
	if err != nil {
		return nil, err
	}
	step, ok := plan.Graph.Lookup(nodeID)
	if !ok {
		return nil, fault.New(fault.NotFound, "the definition of the run has no such node")
	}
	out := &nodeAt{sequence: events[start].Sequence, state: st, def: plan.Graph.Steps[step].Node}
	out.in, out.typeID, out.bad = machine.New(plan, e.cfg.Limits, st).Input(nodeID)
	return out, nil
}

func sortedNames(set map[string]bool) []string {
	out := []string{}
	for name, in := range set {
		if in {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// readRun returns the record of a run and its events.
func (e *Executor) readRun(ctx context.Context, r subject.Run) (*wire.RunRecord, []wire.Event, error) {
	frames, err := e.deps.Log.Run(ctx, r)
	if errors.Is(err, runlog.ErrNotFound) || err == nil && len(frames) == 0 {
		return nil, nil, fault.NoRun()
	}
	if err != nil {
		return nil, nil, err
	}
	if err := frame.VerifyChain(frames); err != nil {
		return nil, nil, err
	}
	rec, err := frames[0].Record()
	if err != nil {
		return nil, nil, err
	}
	var out []wire.Event
	for _, f := range frames {
		events, err := f.Events()
		if err != nil {
			return nil, nil, err
		}
		out = append(out, events...)
	}
	return rec, out, nil
}

// lastStart returns the index of the event that started the last attempt of a node; -1: none did.
func lastStart(events []wire.Event, nodeID string, at int) int {
	for i, event := range slices.Backward(events) {
		if event.Type == wire.EventNodeStarted && event.NodeID == nodeID && (at < 0 || event.Sequence <= at) {
			return i
		}
	}
	return -1
}
