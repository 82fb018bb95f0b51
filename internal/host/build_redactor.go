package host

import (
	"context"
	"fmt"
	"slices"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/obs"
	"waybill.dev/waybill/internal/token"
	"waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/redactor"
	"waybill.dev/waybill/services/redactor/redact"
)

// openRedactor makes the redactor first: the logs of everything else pass it.
func (h *Host) openRedactor(specs []auth.Spec) error {
	cfg := redactor.DefaultConfig()
	more, err := hostfile.ReadSecrets(h.opts.SecretsFile)
	if err != nil {
		return fmt.Errorf("%w: --secrets-file: %w", exit.ErrUsage, err)
	}
	cfg.Shapes = h.opts.RedactShapes
	cfg.HostSecrets = slices.Concat(hostSecrets(specs, h.opts), h.opts.Models.Secrets(), h.opts.tools.Secrets(), more)
	if h.redactor, err = redactor.New(cfg); err != nil {
		return err
	}
	h.Log = obs.Clean(h.Log, h.redactor.Clean)
	return nil
}

func (h *Host) buildRedactor(context.Context, []auth.Spec) error {
	h.Clients.redactor = redactorv1.NewRedactorClient(h.serve("redactor", h.redactor.Register))
	return nil
}

// newRedactor makes a redactor that knows the secrets of the operator's file, and the
// keys that URLs of assets are signed with.
func newRedactor(o ProcessOptions, assetKeys ...string) (*redactor.Service, error) {
	cfg := redactor.DefaultConfig()
	cfg.Shapes = o.redactShapes
	var err error
	if cfg.HostSecrets, err = hostfile.ReadSecrets(o.secretsFile); err != nil {
		return nil, fmt.Errorf("%w: --secrets-file: %w", exit.ErrUsage, err)
	}
	for i, key := range token.Secrets(assetKeys) {
		cfg.HostSecrets = append(cfg.HostSecrets, redact.Secret{ID: fmt.Sprintf("asset-key-%d", i+1), Value: redact.Value(key)})
	}
	return redactor.New(cfg)
}
