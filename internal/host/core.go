package host

import (
	"context"
	"log/slog"

	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/audit"
	"waybill.dev/waybill/internal/host/natsstore"
	"waybill.dev/waybill/internal/host/peer"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/obs/telemetry"
	"waybill.dev/waybill/internal/obs/tracing"
	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/internal/share"
)

// core has what the builders of all services of a process share.
type core struct {
	log    *slog.Logger
	group  lifecycle.Group
	stores *natsstore.Stores
	tiers  tiers
	// clients call the services of the host, in this process or in others.
	clients peer.Clients
	// audit is nil if there is no audit log.
	audit     *audit.Log
	telemetry *telemetry.Telemetry
	// spans is nil unless spans are exported.
	spans *tracing.Exporter
	// bytes is the pool of bytes for requests and answers; nil in a process without callers.
	bytes *share.Pool
	// closers run last first.
	closers []func()
}

// later registers f to run when the process ends.
func (c *core) later(f func()) { c.closers = append(c.closers, f) }

func (c *core) close() {
	for i := len(c.closers) - 1; i >= 0; i-- {
		c.closers[i]()
	}
	c.closers = nil
}

// serveLocally serves a service within this process, and returns a connection to it.
func (c *core) serveLocally(name string, register func(grpc.ServiceRegistrar)) grpc.ClientConnInterface {
	srv := rpc.NewLocal(c.log, nil, nil)
	register(srv)
	c.group.Start(lifecycle.Part{Name: name + " calls", Run: srv.Serve})
	return srv
}

// openStores opens the stores of a service on the NATS servers of an address, as soon as they
// answer. waiting is called with the reason for each wait.
func (c *core) openStores(ctx context.Context, at *natsstore.Address, service string, cfg jetstream.Config, waiting func(error), needs ...natsstore.Needs) error {
	s, err := at.Opener(service, cfg, c.log, needs...).Wait(ctx, waiting)
	if err != nil {
		return err
	}
	c.stores = s
	c.later(s.Close)
	return nil
}

// withSeams adds the stores of the test seams, if they are served.
func withSeams(testSeams bool, needs ...natsstore.Needs) []natsstore.Needs {
	if testSeams {
		return append(needs, natsstore.ForSeams)
	}
	return needs
}
