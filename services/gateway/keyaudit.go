package gateway

import (
	"context"
	"time"

	"waybill.dev/waybill/internal/audit"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/services/gateway/auth"
)

// syncAgain is how long it takes until the audit of keys is tried again.
const syncAgain = 10 * time.Second

// AuditKeys records what becomes of keys, and that they are used, until ctx ends
// (OpenWOP host contract §8.3).
func (s *Service) AuditKeys(ctx context.Context) error {
	if s.usage == nil {
		<-ctx.Done()
		return nil
	}
	for {
		err := audit.SyncKeys(ctx, s.deps.Audit.Once(), s.deps.AuditKeys, heldKeys(s.cfg.Keys))
		if err == nil || ctx.Err() != nil {
			break
		}
		s.deps.Logger.Warn("new and revoked keys are not in the audit log yet", "error", err)
		if !lifecycle.Wait(ctx, syncAgain) {
			break
		}
	}
	return s.usage.Run(ctx)
}

func heldKeys(specs []auth.Spec) []audit.HeldKey {
	out := make([]audit.HeldKey, len(specs))
	for i, s := range specs {
		out[i] = audit.HeldKey{Tenant: s.Tenant, ID: s.ID()}
		for _, scope := range s.Scopes {
			out[i].Scopes = append(out[i].Scopes, string(scope))
		}
		if s.All {
			out[i].Scopes = []string{"*"}
		}
		out[i].Scopes = append(out[i].Scopes, s.Memberships()...)
	}
	return out
}
