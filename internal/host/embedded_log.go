package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/host/natsstore"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/natsperm"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/gateway/auth"
)

// Values of --durability.
const (
	DurabilitySync    = "sync"
	DurabilityProcess = "process"
)

// EmbeddedLog configures the embedded log of a whole host.
type EmbeddedLog struct {
	// NATSAddr is the address for readers of events; empty disables it.
	NATSAddr   string
	Durability string
	// HotWindow is how long a run stays in the log after its end, as workflow.ParseRetention reads it.
	// Then it is moved to the cold store. Empty means for ever.
	HotWindow string
	// GiveUpSealed gives sealed runs up that the cold store lacks, after a loss of its file.
	GiveUpSealed bool
	Recovery     Recovery
}

// Recovery limits the recovery of an embedded log's files at a start; 0 derives a limit from their
// size.
type Recovery struct {
	Timeout time.Duration
	Bytes   int64
}

func (o Recovery) validate() error {
	if o.Timeout < 0 || o.Bytes < 0 {
		return fmt.Errorf("--log-recovery-timeout %s, --log-recovery-bytes %d: want a positive limit, or 0", o.Timeout, o.Bytes)
	}
	return nil
}

func (o Recovery) limits() natsd.Limits { return natsd.Limits{Time: o.Timeout, Memory: o.Bytes} }

func (o *EmbeddedLog) validate() error {
	if o.Durability != DurabilitySync && o.Durability != DurabilityProcess {
		return fmt.Errorf("--durability %q: want %s or %s", o.Durability, DurabilitySync, DurabilityProcess)
	}
	_, err := hotWindow(o.HotWindow)
	return errors.Join(err, o.Recovery.validate())
}

// openLog starts a NATS server and opens its stores.
func (h *Host) openLog(ctx context.Context) error {
	var users []natsd.User
	if h.opts.Log.NATSAddr != "" {
		specs, err := parseAPIKeys(h.opts.Public.APIKeys)
		if err != nil {
			return err
		}
		users = natsUsers(specs)
	}
	var err error
	h.nats, err = natsd.Start(ctx, natsd.Config{
		Dir: natsDir(h.opts.DataDir), Sync: h.opts.Log.Durability == DurabilitySync, Layout: natsstore.Layout{},
		Addr: h.opts.Log.NATSAddr, Users: users, Recovery: h.opts.Log.Recovery.limits(), Log: h.log,
	}, rand.Text())
	if err != nil {
		return err
	}
	h.later(h.nats.Stop)
	h.group.Start(lifecycle.Part{Name: "run log", Run: h.nats.Watch})
	cfg := h.opts.Execution.logConfig(true)
	cfg.OnDisk = h.nats.OnDisk
	needs := withSeams(h.opts.Public.TestSeams, natsstore.ForDispatcher, natsstore.ForAcceptor, natsstore.ForGateway)
	if h.stores, err = natsstore.OpenEmbedded(ctx, h.nats.Connect, cfg, needs...); err != nil {
		return err
	}
	h.later(h.stores.Close)
	if err := h.openCold(ctx); err != nil {
		return err
	}
	return h.makeConsumers(ctx, users)
}

// natsDir is the directory of an embedded NATS server.
func natsDir(dataDir string) string { return filepath.Join(dataDir, "nats") }

// makeConsumers creates the consumers of the users.
func (h *Host) makeConsumers(ctx context.Context, users []natsd.User) error {
	if len(users) == 0 {
		return nil
	}
	nc, err := h.nats.Connect("consumers of readers")
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

// natsUsers returns a NATS user per tenant: the tenant's first key with permission to read runs.
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
