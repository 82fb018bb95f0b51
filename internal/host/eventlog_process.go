package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/internal/host/natsstore"
	"waybill.dev/waybill/internal/host/peer"
	"waybill.dev/waybill/internal/runlog/jetstream"
)

// EventLogProcess are the settings of a separate event log process.
type EventLogProcess struct {
	Process
	NATS  natsstore.Address
	Model ReadModel
	Cold  ColdStore
}

// Validate returns all errors, joined.
func (o *EventLogProcess) Validate() error {
	return errors.Join(o.Process.Validate(), validateSharedNATS(&o.NATS), o.Model.Validate(), o.Cold.Validate())
}

// Check returns all errors in the values, joined. It reads neither files nor variables.
func (o *EventLogProcess) Check() error {
	return errors.Join(o.Process.Check(), o.NATS.Check(), o.Model.Check(), o.Cold.Check())
}

// validateSharedNATS checks the address of the NATS servers that all services of a host share.
func validateSharedNATS(a *natsstore.Address) error {
	errs := []error{a.Validate()}
	if a.URL == "" {
		errs = append(errs, errors.New("--nats: the services of a host meet in one NATS; give its URL, such as nats://nats:4222"))
	}
	return errors.Join(errs...)
}

// RunEventLog serves until ctx ends.
func RunEventLog(ctx context.Context, o EventLogProcess, log *slog.Logger) error {
	if o.Model.PostgresURLFile == "" {
		if err := os.MkdirAll(o.Model.DataDir, 0o700); err != nil {
			return fmt.Errorf("--data-dir %s: %w", o.Model.DataDir, err)
		}
		unlock, err := hostfile.LockDir(o.Model.DataDir)
		if err != nil {
			return err
		}
		defer unlock()
	}
	out, err := openOutputs(ctx, "waybill-eventlog", o.Telemetry, o.Secrets, Credentials{Models: &models.Options{}}, log)
	if err != nil {
		return err
	}
	p, err := newProcess(&o.Process, out)
	if err != nil {
		return err
	}
	defer p.close()
	p.serveOperator()
	if err := p.openStores(ctx, &o.NATS, peer.EventLog, jetstream.DefaultConfig(), p.serving.Set); err != nil {
		return ignoreStop(ctx, err)
	}
	if err := p.readShared(ctx, &o.Cold); err != nil {
		return err
	}
	p.exportCalls()
	s, err := p.newEventLog(ctx, &o.Model)
	if err != nil {
		return err
	}
	s.Register(p.server)
	// lost counts the records that the run log has lost, between other records and at its end.
	lost := func() uint64 { return p.stores.Log.Lost() + s.Lost() }
	p.registry.MustRegister(slices.Concat(s.Collectors(), p.coldCollectors())...)
	p.registry.MustRegister(lostRecords(lost))
	logged := uint64(0)
	return p.serve(ctx, func(ctx context.Context) error {
		err := p.stores.Connected(ctx)
		if err == nil {
			_ = s.Compare(ctx) // the next check reports a log that does not answer now
		}
		if n := lost(); n != logged {
			logged = n
			p.log.Error(lostMessage, "records", n, "positions", p.stores.Log.Missing(ctx))
		}
		return errors.Join(err, s.Ready())
	}, nil)
}
