package host

import (
	"context"
	"errors"
	"log/slog"
)

// RedactorProcess are the settings of a separate redactor process.
type RedactorProcess struct {
	Process
	// Known are the secrets in the settings of all services of the host.
	Known     Credentials
	TestSeams bool
}

// Validate returns all errors, joined.
func (o *RedactorProcess) Validate() error {
	return errors.Join(o.Process.Validate(), o.Known.Validate())
}

// Check returns all errors in the values, joined. It reads neither files nor variables.
func (o *RedactorProcess) Check() error { return errors.Join(o.Process.Check(), o.Known.Check()) }

// RunRedactor serves until ctx ends.
func RunRedactor(ctx context.Context, o RedactorProcess, log *slog.Logger) error {
	o.Known.canary = canary(o.TestSeams)
	out, err := openOutputs(ctx, "waybill-redactor", o.Telemetry, o.Secrets, o.Known, log)
	if err != nil {
		return err
	}
	p, err := newProcess(&o.Process, out)
	if err != nil {
		return err
	}
	defer p.close()
	p.exportCalls()
	out.redactor.Register(p.server)
	return p.serve(ctx, nil, nil)
}
