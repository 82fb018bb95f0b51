package gateway

import (
	"context"
	"time"

	"waybill.dev/waybill/internal/audit"
	"waybill.dev/waybill/internal/retry"
	"waybill.dev/waybill/services/gateway/auth"
)

// keySyncRetry is the wait before the audit of keys is retried.
const keySyncRetry = 10 * time.Second

// AuditKeys records new, removed and used keys until ctx ends (OpenWOP host contract §8.3).
func (s *Service) AuditKeys(ctx context.Context) error {
	if s.usage == nil {
		<-ctx.Done()
		return nil
	}
	for range retry.Every(keySyncRetry).Tries(ctx) {
		err := audit.SyncKeys(ctx, s.deps.Audit.Once(), s.deps.AuditKeys, auditedKeys(s.cfg.Keys))
		if err == nil || ctx.Err() != nil {
			break
		}
		s.deps.Logger.Warn("cannot record new and revoked keys in the audit log, will retry", "error", err)
	}
	return s.usage.Run(ctx)
}

func auditedKeys(specs []auth.Spec) []audit.HeldKey {
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
