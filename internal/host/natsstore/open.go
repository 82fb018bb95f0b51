package natsstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/internal/natsmon"
	"waybill.dev/waybill/internal/retry"
	"waybill.dev/waybill/internal/runlog/jetstream"
)

// Patience is how long a call waits for a log that does not answer: longer than a leader election of
// a cluster, far shorter than callers wait.
const Patience = 2 * time.Second

// Opener opens the stores of a service in NATS. It may start before the server.
type Opener struct {
	Dial    Dial
	Config  jetstream.Config
	Needs   []Needs
	monitor *natsmon.Monitor // nil means it is unknown how the servers write
	Log     *slog.Logger
}

// Opener returns an Opener for this address.
func (o *Address) Opener(service string, cfg jetstream.Config, log *slog.Logger, needs ...Needs) *Opener {
	cfg.Replicas, cfg.InSync, cfg.Patience = o.Replicas, o.InSync, Patience
	n := &Opener{Config: cfg, Needs: needs, Log: log}
	n.Dial = func(name string) (*nats.Conn, error) {
		nc, err := o.Dial(service+" "+name, log)
		if err != nil {
			return nil, fmt.Errorf("cannot connect: %w", err)
		}
		return nc, nil
	}
	if len(o.Monitors) > 0 {
		n.monitor = natsmon.New(o.Monitors, log)
	} else {
		log.Info("whether the NATS servers sync every write cannot be seen; --nats-monitor has it looked at")
	}
	return n
}

// Try opens the stores once.
func (n *Opener) Try(ctx context.Context) (*Stores, error) {
	s, err := Open(ctx, n.Dial, n.Config, n.Needs...)
	if err != nil {
		s.Close()
		if errors.Is(err, nats.ErrNoResponders) {
			err = fmt.Errorf("no JetStream at this server, or not yet: %w", err)
		}
		return nil, err
	}
	s.Monitor = n.monitor
	warnOfPayload(s.conns[0], n.Log)
	return s, nil
}

// Wait tries to open the stores until it succeeds, ctx ends, or retries cannot help. waiting gets
// the reason for each wait.
func (n *Opener) Wait(ctx context.Context, waiting func(error)) (*Stores, error) {
	logged := ""
	for range retry.Every(probe.CheckEvery).Tries(ctx) {
		s, err := n.Try(ctx)
		switch {
		case err == nil:
			return s, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case Hopeless(err):
			return nil, fmt.Errorf("--nats: %w", err)
		}
		waiting(probe.WithPublic("NATS does not open yet", fmt.Errorf("NATS does not open yet: %w", err)))
		if err.Error() != logged {
			logged = err.Error()
			n.Log.Warn("NATS does not open yet; it is tried again every second", "error", err)
		}
	}
	return nil, ctx.Err()
}

// Connected returns why the stores cannot be used; nil if they can.
func (s *Stores) Connected(ctx context.Context) error {
	for _, nc := range s.conns {
		if !nc.IsConnected() {
			return probe.Plain("no connection to NATS")
		}
	}
	if s.Monitor != nil {
		if err := s.Monitor.Check(ctx); err != nil {
			return probe.WithPublic(natsmon.ErrLazy.Error(), err)
		}
	}
	if err := s.Log.Check(ctx); err != nil {
		return err
	}
	return s.kept.Check(ctx)
}
