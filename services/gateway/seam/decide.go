package seam

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/approval"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
)

// This file serves the gate of model capabilities and the gate of approvals. Both are pure
// functions of the request (OpenWOP envelope contract §16.3, §23.4; host contract §6).

// event is the event that a run would record for a decision.
type event struct {
	Type    wire.EventType  `json:"type"`
	Payload json.RawMessage `json:"payload"`
}

// knownVendors are the providers whose models have the base capabilities in this seam. Other
// models have none.
var knownVendors = []string{"anthropic", "openai", "google", "gemini"}

// testNode is the default node of a request.
const testNode = "test-node"

// gateRequest is a node's declaration, its model, and what the host supports.
type gateRequest struct {
	Module                modelgate.Needs `json:"module"`
	ActiveProvider        string          `json:"activeProvider"`
	ActiveModel           string          `json:"activeModel"`
	SubstitutionSupported bool            `json:"substitutionSupported"`
	SupportedProviders    []string        `json:"supportedProviders"`
	NodeID                string          `json:"nodeId"`
	// RunID and CorrelationID are those of the event that is recorded.
	RunID         string `json:"runId"`
	CorrelationID string `json:"correlationId"`
}

// evaluate evaluates the gate. event is nil if the node's own model is called.
func (req *gateRequest) evaluate(body []byte) (outcome map[string]any, recorded *event, err error) {
	if err := strictjson.Read(body, req); err != nil {
		return nil, nil, argument("%s", describe(err))
	}
	if req.ActiveProvider == "" || req.ActiveModel == "" {
		return nil, nil, argument("activeProvider and activeModel are required")
	}
	if wrong := req.Module.Check(); len(wrong) > 0 {
		return nil, nil, argument("/module%s: %s", wrong[0].Path, wrong[0].Message)
	}
	if req.NodeID == "" {
		req.NodeID = testNode
	}
	active := modelgate.Model{Provider: req.ActiveProvider, Model: req.ActiveModel}
	o := modelgate.Evaluate(req.Module, active, modelgate.Host{
		Substitutes: req.SubstitutionSupported,
		Routes:      func(m modelgate.Model) bool { return slices.Contains(req.SupportedProviders, m.Provider) },
		Has: func(m modelgate.Model, id modelgate.Capability) (has, known bool) {
			return slices.Contains(knownVendors, m.Provider) && slices.Contains(modelgate.Base(), id), true
		},
	})
	outcome = map[string]any{}
	if d, ok := o.Event(req.NodeID, active); ok {
		if err := json.Unmarshal(d.Payload, &outcome); err != nil {
			return nil, nil, err
		}
		recorded = &event{d.Type, d.Payload}
	}
	outcome["route"] = o.Route
	return outcome, recorded, nil
}

// modelGate evaluates the gate of model capabilities.
func (h *Handler) modelGate(_ context.Context, _ *http.Request, body []byte) (any, error) {
	var req gateRequest
	outcome, recorded, err := req.evaluate(body)
	if err != nil {
		return nil, err
	}
	return map[string]any{"outcome": outcome, "event": recorded}, nil
}

// synthesizeGateEvent evaluates the gate of model capabilities and records its event in a test log
// (RFC 0031 §D).
func (h *Handler) synthesizeGateEvent(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	var req gateRequest
	outcome, recorded, err := req.evaluate(body)
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"outcome": outcome, "event": nil}
	e := emission{RunID: req.RunID, NodeID: req.NodeID, CorrelationID: req.CorrelationID, Payload: map[string]json.RawMessage{}}
	if recorded != nil {
		e.Type, e.Payload = string(recorded.Type), strictjson.Object(recorded.Payload)
	}
	if err := e.check(); err != nil || recorded == nil {
		return answer, err
	}
	emitted, err := h.emit(ctx, e)
	if err != nil {
		return nil, err
	}
	answer["event"] = emitted.(map[string]any)["event"]
	return answer, nil
}

// The gate of the approval seam and its roles.
const (
	gateID       = "conformance-approval-gate"
	approverRole = "approver"
	overrideRole = "approval-override"
	// approvalsRespond is the scope a key needs to act at a gate (OpenWOP host contract
	// §8.2).
	approvalsRespond auth.Scope = "approvals:respond"
)

// scenario is an action at the gate and the roles of its principal.
type scenario struct {
	act   approval.Act
	roles []string
}

// scenarios set the roles of the principal, not the outcome.
var scenarios = map[string]scenario{
	"grant":                 {approval.Grant, []string{approverRole}},
	"authorized-grant":      {approval.Grant, []string{approverRole}},
	"unauthorized-grant":    {approval.Grant, nil},
	"reject":                {approval.Reject, []string{approverRole}},
	"unauthorized-reject":   {approval.Reject, nil},
	"override":              {approval.Override, []string{approverRole, overrideRole}},
	"unauthorized-override": {approval.Override, []string{approverRole}},
}

// spelling normalizes the name of a scenario.
var spelling = strings.NewReplacer("_", "-", " ", "-", "authoris", "authoriz")

// approvalGate evaluates an action at the gate of approvals. The caller needs the scope
// approvals:respond: a scenario grants its key nothing.
func (h *Handler) approvalGate(ctx context.Context, _ *http.Request, body []byte) (any, error) {
	var req struct {
		Scenario  string `json:"scenario"`
		Principal string `json:"principal"`
		Reason    string `json:"reason"`
	}
	if err := strictjson.Read(body, &req); err != nil {
		return nil, argument("%s", describe(err))
	}
	s, known := scenarios[spelling.Replace(strings.ToLower(req.Scenario))]
	switch {
	case !known:
		return nil, argument("/scenario: want one of grant, unauthorized-grant, reject, unauthorized-reject, override, unauthorized-override")
	case req.Principal == "":
		return nil, argument("/principal: required")
	}
	who := approval.Person{ID: req.Principal, Roles: s.roles}
	if !auth.From(ctx).May(approvalsRespond) {
		who.Roles = nil
	}
	gate := approval.Gate{ID: gateID, Role: approverRole, OverrideRole: overrideRole}
	d, err := approval.Decide(gate, who, s.act, req.Reason)
	switch {
	case fault.CodeOf(err) == fault.Forbidden:
		return map[string]any{"released": false, "event": nil}, nil
	case fault.CodeOf(err) == fault.ValidationError:
		f, _ := fault.As(err)
		return nil, argument("/%s", f.Message)
	case err != nil:
		return nil, err
	}
	return map[string]any{"released": d.Released, "event": event{d.Event.Type, d.Event.Payload}}, nil
}
