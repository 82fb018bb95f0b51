package seam

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/gateway/auth"
)

// shortWorkflow is a definition in the short form of the protocol's test suite.
type shortWorkflow struct {
	WorkflowID string      `json:"workflowId"`
	Nodes      []shortNode `json:"nodes"`
	// Edges are those of a definition; nil executes the nodes in their order.
	Edges     *[]json.RawMessage `json:"edges"`
	Variables []json.RawMessage  `json:"variables"`
}

type shortNode struct {
	NodeID string          `json:"nodeId"`
	TypeID string          `json:"typeId"`
	Config json.RawMessage `json:"config"`
	Inputs json.RawMessage `json:"inputs"`
}

// registerWorkflow registers a workflow that this host can execute for the caller's tenant. Its
// errors have the format of the API (OpenWOP host contract §9.1).
func (h *Handler) registerWorkflow(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	doc, err := h.putWorkflow(ctx, body)
	if err == nil {
		return created(doc), nil
	}
	e, ok := fault.As(h.Clean(ctx, err))
	if !ok {
		return nil, err
	}
	return reply{statusOf(e.Code), json.RawMessage(e.Envelope())}, nil
}

func (h *Handler) putWorkflow(ctx context.Context, body []byte) (any, error) {
	if p := auth.From(ctx); !p.May(auth.WorkflowsWrite) {
		return nil, fault.New(fault.Forbidden, "the API key lacks the scope %s", auth.WorkflowsWrite).
			With("scopeRequired", string(auth.WorkflowsWrite))
	}
	var w shortWorkflow
	if err := strictjson.Decode(body, strictjson.Limits{MaxBytes: maxBody, MaxDepth: 64}, &w); err != nil {
		return nil, fault.New(fault.ValidationError, "%s", describe(err))
	}
	res, err := h.Dispatcher.PutWorkflow(ctx, &dispatcherv1.PutWorkflowRequest{
		Tenant: auth.From(ctx).Tenant, Definition: w.definition(), Replace: true, RequireExecutable: true,
	})
	if err != nil {
		return nil, err
	}
	return map[string]any{"workflowId": res.GetWorkflowId(), "nodeCount": len(w.Nodes)}, nil
}

// definition returns the definition as POST /v1/workflows takes it.
func (w shortWorkflow) definition() []byte {
	object := func(raw json.RawMessage) any {
		if len(raw) == 0 {
			return struct{}{}
		}
		return raw
	}
	nodes, edges := []any{}, []any{}
	for i, n := range w.Nodes {
		nodes = append(nodes, map[string]any{
			"id": n.NodeID, "typeId": n.TypeID, "name": n.NodeID, "position": map[string]int{"x": 200 * i, "y": 0},
			"config": object(n.Config), "inputs": object(n.Inputs),
		})
		if i > 0 && w.Edges == nil {
			edges = append(edges, map[string]any{
				"id": fmt.Sprint("e", i), "sourceNodeId": w.Nodes[i-1].NodeID, "targetNodeId": n.NodeID,
			})
		}
	}
	if w.Edges != nil {
		for _, e := range *w.Edges {
			edges = append(edges, e)
		}
	}
	return strictjson.Render(map[string]any{
		"id": w.WorkflowID, "name": w.WorkflowID, "version": "1", "nodes": nodes, "edges": edges,
		"triggers": []any{}, "variables": append([]json.RawMessage{}, w.Variables...),
		"metadata": struct{}{}, "settings": struct{}{},
	})
}
