package host

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/obs/telemetry"
	"waybill.dev/waybill/services/redactor"
)

// Telemetry are the settings of the export of spans, metrics and logs. The variables of
// OpenTelemetry apply as well.
type Telemetry = telemetry.Flags

const (
	// devRatio exports all traces, for development.
	devRatio = 1
	// serviceRatio follows OpenWOP host contract §10.1.
	serviceRatio = 0.1
)

// DefaultTelemetry are the settings of a service without flags.
func DefaultTelemetry() Telemetry { return Telemetry{DefaultRatio: serviceRatio} }

// validateTelemetry returns all errors in the flags and in the variables, joined.
func validateTelemetry(o Telemetry, environ []string) error {
	_, err := telemetry.Read(o, environ)
	return err
}

// outputs are where a process writes what it does.
type outputs struct {
	redactor  *redactor.Service
	telemetry *telemetry.Telemetry
	// log is redacted, and exported if logs are.
	log *slog.Logger
}

// openOutputs comes first, so that no log line contains a secret of the settings. raw is the log of
// the process.
func openOutputs(ctx context.Context, service string, o Telemetry, s Secrets, known Credentials, raw *slog.Logger) (out outputs, err error) {
	settings, err := telemetry.Read(o, os.Environ())
	if err != nil {
		return out, exit.With(exit.Usage, err)
	}
	if out.telemetry, err = telemetry.Open(ctx, settings, service, raw); err != nil {
		return out, err
	}
	known.headers = settings.Secrets
	if out.redactor, out.log, err = newRedactor(s, known, out.telemetry.Logger(raw)); err != nil {
		out.close()
	}
	return out, err
}

// flushTimeout limits the export of pending data at shutdown.
const flushTimeout = 5 * time.Second

// close exports pending data. An unavailable collector must not delay the shutdown.
func (o outputs) close() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	_ = o.telemetry.Close(ctx)
}

// use makes the outputs those of a process, which closes them last.
func (c *core) use(out outputs) {
	c.log, c.telemetry, c.spans = out.log, out.telemetry, out.telemetry.Spans
	c.later(out.close)
}

// exportMetrics exports the metrics of a registry while the process serves, and once more before its
// services are closed.
func (c *core) exportMetrics(from prometheus.Gatherer) {
	c.telemetry.ExportMetrics(from)
	c.group.Start(lifecycle.Part{
		Name: "export of metrics",
		Run: func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		},
		Stop: func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, flushTimeout)
			defer cancel()
			_ = c.telemetry.StopMetrics(ctx) // the log has the reason
		},
	})
}
