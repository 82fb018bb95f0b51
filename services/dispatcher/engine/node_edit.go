package engine

import (
	"context"
	"encoding/json"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/create"
)

// NodeStart returns what an edit of a node needs of its run, as recorded: the first event of the node, and
// what its last attempt was given. Errors: fault.RunNotFound, fault.NotFound if the node has not started.
func (e *Executor) NodeStart(ctx context.Context, tenant, runID, nodeID string) (out *create.NodeStart, err error) {
	err = e.contain(runID, func() error {
		out, err = e.nodeStart(ctx, subject.Run{Tenant: tenant, RunID: runID}, nodeID)
		return err
	})
	return out, err
}

func (e *Executor) nodeStart(ctx context.Context, r subject.Run, nodeID string) (*create.NodeStart, error) {
	rec, events, err := e.readRun(ctx, r)
	if err != nil {
		return nil, err
	}
	at, err := e.nodeAt(ctx, rec, events, nodeID, -1)
	if err != nil {
		return nil, err
	}
	out := &create.NodeStart{
		TypeID:             at.typeID,
		First:              firstEvent(events, nodeID),
		Config:             at.def.Config,
		Inputs:             at.in.Ports,
		UntrustedInputs:    sortedNames(at.in.UntrustedPorts),
		Variables:          at.in.Variables,
		UntrustedVariables: untrustedOf(at.in.Variables, at.in.UntrustedVariables),
		Untrusted:          isUntrusted(runstate.Fold(rec, events), nodeID),
		Failed:             at.bad,
	}
	return out, nil
}

// firstEvent returns the sequence of a node's first event: its start, or a check of its model before that.
func firstEvent(events []wire.Event, nodeID string) int {
	for _, event := range events {
		if event.NodeID == nodeID {
			return event.Sequence
		}
	}
	return len(events)
}

// untrustedOf lists the untrusted ones of the values.
func untrustedOf(values map[string]json.RawMessage, untrusted map[string]bool) []string {
	all := map[string]bool{}
	for name := range values {
		all[name] = untrusted[name]
	}
	return sortedNames(all)
}

// isUntrusted reports whether a node had untrusted inputs or outputs.
func isUntrusted(st *runstate.State, nodeID string) bool {
	n := st.Nodes[nodeID]
	return n != nil && n.Trust == wire.Untrusted
}
