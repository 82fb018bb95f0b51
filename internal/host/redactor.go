package host

import (
	"log/slog"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/obs"
	"waybill.dev/waybill/services/redactor"
)

// newRedactor creates the redactor of a process, and a redacted log. It comes first, so that no log
// line contains a secret of the settings.
func newRedactor(s Secrets, known Credentials, log *slog.Logger) (*redactor.Service, *slog.Logger, error) {
	cfg := redactor.DefaultConfig()
	cfg.Shapes = s.Shapes
	ofFile, err := hostfile.ReadSecrets(s.File)
	if err != nil {
		return nil, nil, exit.Usagef("--secrets-file: %w", err)
	}
	if cfg.HostSecrets, err = known.list(); err != nil {
		return nil, nil, err
	}
	cfg.HostSecrets = append(cfg.HostSecrets, ofFile...)
	r, err := redactor.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	return r, obs.Clean(log, r.Clean), nil
}
