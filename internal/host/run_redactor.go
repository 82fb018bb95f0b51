package host

import (
	"context"
	"log/slog"
	"time"
)

// RedactorOptions are the flags of `waybill serve redactor`.
type RedactorOptions struct {
	ProcessOptions
	Host Options
}

// RunRedactor serves until ctx ends.
func RunRedactor(ctx context.Context, o RedactorOptions, log *slog.Logger) error {
	began := time.Now()
	h := &Host{Log: log, opts: o.Host}
	h.opts.SecretsFile, h.opts.RedactShapes = o.secretsFile, o.redactShapes
	specs, err := parseKeys(o.Host.APIKeys)
	if err != nil {
		return err
	}
	if err := h.openRedactor(specs); err != nil {
		return err
	}
	a, err := newProcess(o.ProcessOptions, h.Log)
	if err != nil {
		return err
	}
	defer a.close()
	if a.calls.Exporter, err = o.Tracing.exporter(ctx, "waybill-redactor", h.Log, a.later); err != nil {
		return err
	}
	h.redactor.Register(a.server)
	return a.run(ctx, began, nil, nil)
}
