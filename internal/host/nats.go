package host

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/host/natsstore"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/natsperm"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/gateway/auth"
)

// logConfig is how the log is kept, and its runs handed out.
func logConfig(o Options) jetstream.Config {
	cfg := jetstream.DefaultConfig()
	if o.handedOut > 0 { // of a service that executes runs
		cfg.MaxPending = o.handedOut
	}
	return cfg
}

// openLog starts NATS and opens what is kept in it.
func (h *Host) openLog(ctx context.Context, specs []auth.Spec) error {
	var err error
	var users []natsd.User
	if h.opts.NATSAddr != "" {
		users = natsUsers(specs)
	}
	h.NATS, err = natsd.Start(natsd.Config{
		Dir: filepath.Join(h.opts.DataDir, "nats"), Sync: h.opts.Durability == DurabilitySync, Hashed: natsstore.HashedStreams,
		Addr: h.opts.NATSAddr, Users: users, Log: h.Log,
	}, rand.Text())
	if err != nil {
		return err
	}
	h.later(h.NATS.Stop)
	h.Group.Start(lifecycle.Part{Name: "run log", Run: h.NATS.Watch})
	cfg := logConfig(h.opts)
	cfg.OnDisk = h.NATS.OnDisk
	all := []natsstore.Needs{natsstore.ForDispatcher, natsstore.ForAcceptor, natsstore.ForGateway}
	if h.opts.TestSeams {
		all = append(all, natsstore.ForSeams)
	}
	if h.stores, err = natsstore.OpenEmbedded(ctx, h.NATS.Connect, cfg, all...); err != nil {
		return err
	}
	h.later(h.stores.Close)
	return h.makeConsumers(ctx, users)
}

// makeConsumers makes those that the users read from.
func (h *Host) makeConsumers(ctx context.Context, users []natsd.User) error {
	if len(users) == 0 {
		return nil
	}
	nc, err := h.NATS.Connect("consumers of readers")
	if err != nil {
		return err
	}
	defer nc.Close()
	api, err := js.New(nc)
	if err != nil {
		return err
	}
	for _, u := range users {
		if err := (natsperm.Consumer{Tenant: u.Tenant, Name: subject.DefaultConsumer}).Make(ctx, api); err != nil {
			return fmt.Errorf("--nats-addr: %w", err)
		}
	}
	return nil
}

// natsUsers lets the first key of each tenant that may read runs read them over
// NATS.
func natsUsers(specs []auth.Spec) []natsd.User {
	var users []natsd.User
	seen := map[string]bool{}
	for _, s := range specs {
		readable := s.All
		for _, scope := range s.Scopes {
			readable = readable || scope == auth.RunsRead
		}
		if readable && !seen[s.Tenant] {
			seen[s.Tenant] = true
			users = append(users, natsd.User{Name: s.Tenant, Password: s.Key, Tenant: s.Tenant})
		}
	}
	return users
}

// openSpread opens the stores as soon as their server is there, and says meanwhile why
// the service is not ready.
func (h *Host) openSpread(ctx context.Context, o *Peers, service string, more ...natsstore.Needs) error {
	if h.opts.TestSeams {
		more = append(more, natsstore.ForSeams)
	}
	s, err := o.NATS.Opener(service, logConfig(h.opts), h.Log, more...).Wait(ctx, h.standing().Set)
	if err != nil {
		return err
	}
	h.stores = s
	h.later(s.Close)
	return nil
}
