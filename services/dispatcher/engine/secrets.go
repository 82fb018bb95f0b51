package engine

import (
	"context"

	"waybill.dev/waybill/protocol/wire"
)

// openSecrets registers the run's own secrets with the redactor while this process records events
// of the run. done unregisters them if the run has ended. They are registered each time, because
// the redactor may have restarted.
func (e *Executor) openSecrets(ctx context.Context, r *wire.RunRecord) (done func(wire.Status), err error) {
	if r.CredentialRef == "" || e.deps.Secrets == nil {
		return func(wire.Status) {}, nil
	}
	if err := e.deps.Secrets.Open(ctx, r.Owner.Tenant, r.RunID, r.CredentialRef); err != nil {
		return nil, err
	}
	return func(status wire.Status) {
		if status.Terminal() {
			e.closeSecrets(ctx, r)
		}
	}, nil
}

// closeSecrets unregisters the secrets of an ended run.
func (e *Executor) closeSecrets(ctx context.Context, r *wire.RunRecord) {
	if r.CredentialRef == "" || e.deps.Secrets == nil {
		return
	}
	if err := e.deps.Secrets.Close(context.WithoutCancel(ctx), r.Owner.Tenant, r.RunID); err != nil {
		e.deps.Logger.Warn("secrets of an ended run not forgotten", "run_id", r.RunID, "error", err)
	}
}
