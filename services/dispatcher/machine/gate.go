package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/node/media"
)

// failWithoutSecret fails a node whose type needs an unavailable secret. The node never starts
// (OpenWOP host contract §5.7, which checks this before the models).
func (m *Machine) failWithoutSecret(now time.Time, id string, t node.Type, attempt int) bool {
	if len(t.Secrets) == 0 || m.plan.Secrets == nil {
		return false
	}
	bad := m.plan.Secrets(m.st.Record, t.Secrets, m.modelInput(id, t))
	if bad != nil {
		m.failNode(now, id, bad, attempt, wire.Trusted)
	}
	return bad != nil
}

// failWithoutPermission fails a node that may not call its model. The node never starts (OpenWOP
// host contract §5.7, which checks this between secrets and model capabilities).
func (m *Machine) failWithoutPermission(now time.Time, id string, t node.Type, attempt int) bool {
	if !t.AsksModel() || m.plan.Policy == nil {
		return false
	}
	bad := m.plan.Policy(m.st.Record, m.modelInput(id, t))
	if bad != nil {
		m.failNode(now, id, bad, attempt, wire.Trusted)
	}
	return bad != nil
}

// modelInput returns the input that selects a node's model.
func (m *Machine) modelInput(id string, t node.Type) node.Input {
	return node.Input{
		NodeID:       id,
		Config:       t.Configure(m.step(id).Node.Config),
		Configurable: m.st.Record.Configurable,
		Next:         m.nextModel(id),
	}
}

// failWithoutModel fails a node that requires a capability that its model lacks. An event
// before node.failed records the decision, and the node never starts (OpenWOP envelope contract
// §16.3).
func (m *Machine) failWithoutModel(now time.Time, id string, t node.Type, attempt int) bool {
	if m.plan.Gate == nil {
		return false
	}
	needs := m.modelNeeds(id, t)
	if needs == nil {
		return false
	}
	active, o := m.plan.Gate(m.st.Record.Owner.Tenant, m.st.Record.CredentialRef, *needs, m.modelInput(id, t))
	if d, decided := o.Event(id, active); decided {
		m.env.placeEvent(now, d, false) // the author chose the model names: no text comes from upstream
	}
	if o.Route != modelgate.Refuse {
		return false
	}
	m.failNode(now, id, &wire.NodeError{
		Code:    string(fault.CapabilityNotProvided),
		Message: gateMessage(active, o),
		Details: gateDetails(active, o),
	}, attempt, wire.Trusted)
	return true
}

// modelNeeds returns what a node requires of its model: what its type declares, and what the images and
// sounds of its prompt need. nil means nothing.
func (m *Machine) modelNeeds(id string, t node.Type) *modelgate.Needs {
	if !t.AsksModel() {
		return t.Needs
	}
	in, _, bad := m.gatherInput(id)
	if bad != nil { // the node fails on it when it starts
		return t.Needs
	}
	required := media.Of(in).Capabilities()
	if len(required) == 0 {
		return t.Needs
	}
	needs := modelgate.Needs{}
	if t.Needs != nil {
		needs = *t.Needs
		required = slices.DeleteFunc(required, func(c modelgate.Capability) bool { return slices.Contains(needs.Required, c) })
	}
	needs.Required = slices.Concat(needs.Required, required)
	return &needs
}

// gateMessage describes what the node requires and why it is unavailable.
func gateMessage(active modelgate.Model, o modelgate.Outcome) string {
	missing := strings.Join(o.Missing, ", ")
	why := fmt.Sprintf("model %q of provider %q lacks %s, which the node requires",
		active.Model, active.Provider, missing)
	if o.Unknown {
		why = fmt.Sprintf("the catalogue of models does not say of model %q of provider %q that it has %s, "+
			"which the node requires", active.Model, active.Provider, missing)
	}
	switch {
	case len(o.FallbackMissing) > 0:
		why += "; nor is the fallback model known to have " + strings.Join(o.FallbackMissing, ", ")
	case o.FallbackAttempted:
		why += "; the fallback model cannot be asked: " +
			"its provider is not there, there is no key for it, or a policy forbids it"
	}
	return why
}

// gateDetails are recorded because the catalogue of models may change later.
func gateDetails(active modelgate.Model, o modelgate.Outcome) map[string]any {
	out := map[string]any{"missingCapabilities": o.Missing, "provider": active.Provider, "model": active.Model}
	if o.Catalogue != "" {
		out["catalogue"] = o.Catalogue
	}
	return out
}
