package model

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/credential"
)

// Keys provides tenants' own keys for model calls.
type Keys interface {
	// Key returns a tenant's key for a provider. Errors: credential.ErrNone if there is none.
	Key(tenant, provider, ref string) (provider.Secret, error)
	// Hide registers a key as a secret of a run. After an error the key must not be used.
	Hide(ctx context.Context, tenant, runID, provider, ref string, key provider.Secret) error
}

// tenantKey returns the tenant's own key for a call; empty uses the host's key. A run that names a
// key never falls back to the host's key for the provider that it chose. Other providers, such as a
// fallback model's, use the host's key if the tenant has none.
func (l *Loop) tenantKey(t Task, id string, o overlay) (provider.Secret, *wire.NodeError) {
	if t.CredentialRef == "" || l.deps.Keys == nil {
		return "", nil
	}
	key, err := l.deps.Keys.Key(t.Tenant, id, t.CredentialRef)
	switch chosen := firstNonEmpty(o.Provider, o.AI.Provider, l.cfg.Defaults.Provider); {
	case err == nil:
		return key, nil
	case !errors.Is(err, credential.ErrNone):
		return "", &wire.NodeError{
			Code: string(fault.CredentialRequired), Message: "the run's credential cannot be used: " + err.Error(),
		}
	case id == chosen:
		return "", &wire.NodeError{
			Code:    string(fault.CredentialRequired),
			Message: fmt.Sprintf("the tenant has no credential %q for provider %q", t.CredentialRef, id),
			Details: map[string]any{"provider": id},
		}
	}
	return "", nil
}

// registeredKey returns the tenant's own key for a call. The key may have changed since the run was
// claimed, so it is registered with the redactor before any call could echo it. The returned error
// is not the node's.
func (l *Loop) registeredKey(
	ctx context.Context, t Task, id string, o overlay,
) (provider.Secret, *wire.NodeError, error) {
	key, bad := l.tenantKey(t, id, o)
	if bad != nil || key == "" {
		return "", bad, nil
	}
	return key, nil, l.deps.Keys.Hide(ctx, t.Tenant, t.RunID, id, t.CredentialRef, key)
}

// Secrets returns why a node cannot get the secrets that its type requires; nil if it can (OpenWOP
// host contract §5.7). The host's only secrets for nodes are tenants' provider keys.
func (l *Loop) Secrets(r *wire.RunRecord, needed []pack.Secret, in node.Input) *wire.NodeError {
	for _, s := range needed {
		if bad := l.checkSecret(r, s, in); bad != nil {
			return bad
		}
	}
	return nil
}

// kindProvider is the secret kind of provider keys.
const kindProvider = "ai-provider"

func (l *Loop) checkSecret(r *wire.RunRecord, s pack.Secret, in node.Input) *wire.NodeError {
	fail := func(code fault.Code, details map[string]any, format string, args ...any) *wire.NodeError {
		why := fmt.Sprintf("the node needs the secret %q: ", s.ID) + fmt.Sprintf(format, args...)
		return &wire.NodeError{Code: string(code), Message: why, Details: details}
	}
	if l.deps.Keys == nil || s.Kind != kindProvider {
		return fail(fault.CredentialUnavailable, map[string]any{"capability": "secrets", "requirement": s.ID},
			"this host has no secrets of the kind %s for nodes", s.Kind)
	}
	id := s.Provider
	if id == "" {
		id = l.activeModel(in).Provider
	}
	if !slices.Contains(l.cfg.BYOK, id) {
		return fail(fault.CredentialForbidden, map[string]any{"provider": id},
			"provider %q takes no caller's own credential here", id)
	}
	_, err := l.deps.Keys.Key(r.Owner.Tenant, id, r.CredentialRef)
	if err != nil {
		return fail(fault.CredentialRequired, map[string]any{"provider": id},
			"the tenant has no credential for provider %q under the run's ai.credentialRef", id)
	}
	return nil
}
