package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/natsmon"
	"waybill.dev/waybill/internal/runlog/jetstream"
)

// logPatience is how long a call waits for a log that does not answer: longer
// than a change of leader in a cluster takes, far shorter than callers wait.
const logPatience = 2 * time.Second

// natsStores opens what a service keeps in NATS. It may begin before its server does.
type natsStores struct {
	dial    natsDial
	cfg     jetstream.Config
	needs   []needs
	monitor *natsmon.Monitor // nil: how the servers write cannot be seen
	log     *slog.Logger
}

// stores is how a service that is told where NATS is opens what it needs there.
func (o *natsAddress) stores(service string, cfg jetstream.Config, log *slog.Logger, needs ...needs) *natsStores {
	cfg.Replicas, cfg.InSync, cfg.Patience = o.replicas, o.inSync, logPatience
	n := &natsStores{cfg: cfg, needs: needs, log: log}
	n.dial = func(name string) (*nats.Conn, error) {
		nc, err := o.dial(service+" "+name, log)
		if err != nil {
			return nil, fmt.Errorf("cannot connect: %w", err)
		}
		return nc, nil
	}
	if len(o.monitor) > 0 {
		n.monitor = natsmon.New(o.monitor, log)
	} else {
		log.Info("whether the NATS servers sync every write cannot be seen; --nats-monitor has it looked at")
	}
	return n
}

// try opens the stores, if their server is there.
func (n *natsStores) try(ctx context.Context) (*stores, error) {
	s, err := openStores(ctx, n.dial, n.cfg, n.needs...)
	if err != nil {
		s.close()
		if errors.Is(err, nats.ErrNoResponders) {
			err = fmt.Errorf("no JetStream at this server, or not yet: %w", err)
		}
		return nil, err
	}
	s.monitor = n.monitor
	warnOfPayload(s.conns[0], n.log)
	return s, nil
}

// wait opens the stores as soon as their server is there; meanwhile why is told what they
// wait for. What waiting does not mend is an error.
func (n *natsStores) wait(ctx context.Context, why func(error)) (*stores, error) {
	told := ""
	for {
		s, err := n.try(ctx)
		switch {
		case err == nil:
			return s, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case hopeless(err):
			return nil, fmt.Errorf("--nats: %w", err)
		}
		why(named{"NATS does not open yet", fmt.Errorf("NATS does not open yet: %w", err)})
		if err.Error() != told {
			told = err.Error()
			n.log.Warn("NATS does not open yet; it is tried again every second", "error", err)
		}
		if !lifecycle.Wait(ctx, checkEvery) {
			return nil, ctx.Err()
		}
	}
}

// openSpread opens the stores as soon as their server is there, and says meanwhile why
// the service is not ready.
func (h *host) openSpread(ctx context.Context, o *spreadOptions, service string, more ...needs) error {
	if h.opts.testSeams {
		more = append(more, seamNeeds)
	}
	s, err := o.nats.stores(service, logConfig(h.opts), h.log, more...).wait(ctx, h.standing().set)
	if err != nil {
		return err
	}
	h.stores = s
	h.later(s.close)
	return nil
}

// connected reports why the stores cannot be used; nil when they can.
func (s *stores) connected(ctx context.Context) error {
	for _, nc := range s.conns {
		if !nc.IsConnected() {
			return errors.New("no connection to NATS")
		}
	}
	if s.monitor != nil {
		if err := s.monitor.Check(ctx); err != nil {
			return named{natsmon.ErrLazy.Error(), err}
		}
	}
	if err := s.log.Check(ctx); err != nil {
		return err
	}
	return s.kept.Check(ctx)
}
