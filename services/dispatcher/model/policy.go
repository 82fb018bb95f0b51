package model

import (
	"errors"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/modelgate"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider/credential"
)

// Policy returns why the provider policy denies a node its model; nil if it does not (OpenWOP host
// contract §5.8).
func (l *Loop) Policy(r *wire.RunRecord, in node.Input) *wire.NodeError {
	m := l.activeModel(in)
	d := l.denial(r.Owner.Tenant, r.CredentialRef, m)
	if d == nil {
		return nil
	}
	details := map[string]any{"provider": m.Provider, "reason": d.Reason}
	if d.Allowed != nil {
		details["model"], details["allowed"] = m.Model, d.Allowed
	}
	return &wire.NodeError{Code: string(fault.ProviderPolicyDenied), Message: d.Message, Details: details}
}

// denial applies the tenant's rule for a model's provider.
func (l *Loop) denial(tenant, credentialRef string, m modelgate.Model) *Denial {
	rule := l.deps.Policies.Of(tenant, m.Provider)
	key := KeyNone
	if credentialRef != "" && rule.Mode == modelgate.Required {
		key = l.policyKeyOf(tenant, m.Provider, credentialRef)
	}
	return rule.Judge(m, key)
}

func (l *Loop) policyKeyOf(tenant, provider, ref string) PolicyKey {
	if l.deps.Keys == nil {
		return KeyUnresolved
	}
	if _, err := l.deps.Keys.Key(tenant, provider, ref); errors.Is(err, credential.ErrNone) {
		return KeyUnresolved
	}
	return KeyFound // an unreadable key is reported when it is used
}
