package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"waybill.dev/waybill/internal/host/hostfile"
)

// EventLogOptions are the flags of `waybill serve eventlog`.
type EventLogOptions struct {
	ProcessOptions
	Spread Peers
	Host   Options
}

// RunEventLog serves until ctx ends.
func RunEventLog(ctx context.Context, o EventLogOptions, log *slog.Logger) error {
	began := time.Now()
	if o.Host.Postgres.URLFile == "" {
		if err := os.MkdirAll(o.Host.DataDir, 0o700); err != nil {
			return fmt.Errorf("--data-dir %s: %w", o.Host.DataDir, err)
		}
		unlock, err := hostfile.LockDir(o.Host.DataDir)
		if err != nil {
			return err
		}
		defer unlock()
	}
	h, err := newPart(o.ProcessOptions, o.Host, log)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.openSpread(ctx, &o.Spread, nameEventLog); err != nil {
		return orStopped(ctx, err)
	}
	if h.process.calls.Exporter, err = h.opts.Tracing.exporter(ctx, "waybill-eventlog", h.Log, h.later); err != nil {
		return err
	}
	if err := h.buildEventLog(ctx, nil); err != nil {
		return err
	}
	h.process.registry.MustRegister(h.events.Collectors()...)
	h.process.registry.MustRegister(lostRecords(h.lost))
	told := uint64(0)
	return h.process.run(ctx, began, func(ctx context.Context) error {
		err := h.stores.Connected(ctx)
		if err == nil {
			_ = h.events.Compare(ctx) // a log that does not answer now is told of by the next check
		}
		if lost := h.lost(); lost != told {
			told = lost
			h.Log.Error("the run log has lost records", "records", lost)
		}
		return errors.Join(err, h.events.Ready())
	}, nil)
}

// lost counts what the run log had and has no more, between other records and at its end.
func (h *Host) lost() uint64 { return h.stores.Log.Lost() + h.events.Lost() }

// orStopped is no error where the process was only told to end.
func orStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// newPart begins a service that carries a part of a host: its address is taken, and its
// metrics and probes are there while it waits for what it needs.
func newPart(c ProcessOptions, o Options, log *slog.Logger) (*Host, error) {
	o.SecretsFile, o.RedactShapes, o.Tracing, o.ConfigFile = c.secretsFile, c.redactShapes, c.Tracing, c.configFile
	specs, err := parseKeys(o.APIKeys)
	if err != nil {
		return nil, err
	}
	h := &Host{Log: log, opts: o}
	if err := h.openRedactor(specs); err != nil {
		return nil, err
	}
	if h.process, err = newProcess(c, h.Log); err != nil {
		return nil, err
	}
	h.Group = &h.process.group
	h.later(h.process.close)
	h.process.operate()
	return h, nil
}
