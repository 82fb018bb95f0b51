// Package webhook tells servers outside of the events of runs, and asks those that runs
// name as callbackUrl: it keeps who wants to know of what, and delivers at least once, in
// the order of each run.
//
//	run log → outbox.Feeder → lanes → deliver.Worker → the receiver
//	              subscription.View ┘        └ dead letters
//
// A run never waits for any of it: all of it reads what is already durable.
package webhook

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/egress"
	"waybill.dev/waybill/services/gateway/webhook/deliver"
	"waybill.dev/waybill/services/gateway/webhook/outbox"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// Config is what an operator sets.
type Config struct {
	// HostKey is secret, and the same for all replicas: the secrets derive from it.
	HostKey []byte
	// Egress says which URLs may be called.
	Egress egress.Policy
	// Delivery says how often and how fast.
	Delivery deliver.Policy
}

// Deps are the collaborators; the caller owns and closes them.
type Deps struct {
	Log outbox.Log
	// Subscriptions, Lanes and Dead are buckets. Keys of Lanes come and go; Dead forgets
	// what was given up after a time.
	Subscriptions, Lanes, Dead kv.Store
	Clock                      func() time.Time
	Logger                     *slog.Logger
	// Resolver and Poster stand in for the network in tests; nil: the network.
	Resolver egress.Resolver
	Poster   deliver.Poster
	// Questions renders what is asked at callback URLs.
	Questions deliver.Questions
}

// Service is the webhooks of a host.
type Service struct {
	guard   *egress.Guard
	store   *subscription.Store
	view    *subscription.View
	secrets *subscription.Secrets
	lanes   *outbox.Lanes
	dead    *outbox.Dead
	feeder  *outbox.Feeder
	worker  *deliver.Worker
	counts  *deliver.Counts
	log     outbox.Log
	clock   func() time.Time
}

// feedLease is how long a replica that is silent keeps the feed.
const feedLease = 6 * time.Second

// New builds the service; it starts nothing.
func New(cfg Config, d Deps) (*Service, error) {
	secrets, err := subscription.NewSecrets(cfg.HostKey)
	if err != nil {
		return nil, err
	}
	guard := egress.NewGuard(cfg.Egress)
	if d.Resolver != nil {
		guard.Resolver = d.Resolver
	}
	if d.Poster == nil {
		d.Poster = deliver.HTTP{Client: guard.Client(cfg.Delivery.Timeout), Policy: cfg.Egress}
	}
	s := &Service{
		guard: guard, secrets: secrets, log: d.Log, clock: d.Clock, counts: &deliver.Counts{},
		store: subscription.NewStore(d.Subscriptions), view: subscription.NewView(d.Subscriptions, d.Logger),
		lanes: outbox.NewLanes(d.Lanes), dead: outbox.NewDead(d.Dead),
	}
	owner, records := rand.Text(), outbox.NewRecords(d.Log)
	s.feeder = &outbox.Feeder{
		Log: d.Log, KV: d.Subscriptions, View: s.view, Lanes: s.lanes, Records: records,
		Owner: owner, Lease: feedLease, Clock: d.Clock, Logger: d.Logger,
	}
	s.worker = deliver.NewWorker(cfg.Delivery, deliver.Deps{
		Log: d.Log, Records: records, View: s.view, Store: s.store, Secrets: secrets, Lanes: s.lanes, Dead: s.dead,
		Poster: d.Poster, Questions: d.Questions, Fed: s.feeder.Fed, Owner: owner, Clock: d.Clock, Logger: d.Logger, Counts: s.counts,
	})
	return s, nil
}

// Run delivers until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	wg.Go(func() { s.view.Run(ctx) })
	wg.Go(func() { s.feeder.Run(ctx) })
	wg.Go(func() { s.worker.Run(ctx) })
	wg.Wait()
	return ctx.Err()
}

// lookupTimeout bounds the look at a name's addresses when a webhook is registered.
const lookupTimeout = 2 * time.Second

// CheckURL judges a URL as it stands now: its text, and the addresses its name has. A
// name that has none now is let through; each delivery looks again. Errors:
// *egress.MalformedError, egress.ErrRefused.
func (s *Service) CheckURL(ctx context.Context, raw string) error {
	u, err := s.guard.Policy.CheckURL(raw)
	if err != nil || s.guard.Policy.AllowPrivate {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	_, err = s.guard.Resolve(ctx, strings.TrimSuffix(u.Hostname(), "."))
	if errors.Is(err, egress.ErrRefused) {
		return err
	}
	return nil
}

// MaxPerTenant bounds the webhooks of a tenant, and as many servers that its runs ask.
const MaxPerTenant = 100

// ErrFull says that a tenant has as many webhooks as it may.
var ErrFull = fmt.Errorf("the tenant has %d webhooks, which is as many as it may", MaxPerTenant)

// Register makes a webhook for what the log takes from now on. The URL was checked.
func (s *Service) Register(ctx context.Context, tenant, url string, events []wire.EventType, tags []string) (*subscription.Entry, error) {
	all, err := s.store.List(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if count(all, false) >= MaxPerTenant {
		return nil, ErrFull
	}
	end, err := s.log.End(ctx)
	if err != nil {
		return nil, err
	}
	sub := subscription.Subscription{
		Tenant: tenant, ID: "wh_" + strings.ToLower(rand.Text()), URL: url, Events: events, Tags: tags,
		CreatedAt: wire.FormatTime(s.clock()), After: end,
	}
	return s.store.Create(ctx, sub, subscription.State{Key: s.secrets.Key(tenant, sub.ID, 1)})
}

// ErrManyCallbacks says that a tenant's runs call as many servers as they may.
var ErrManyCallbacks = fmt.Errorf("the runs of the tenant name %d servers in callbackUrl, which is as many as they may", MaxPerTenant)

// Expect has a callback URL told what is asked by runs that are created from now on. The
// URL was checked. Errors: ErrManyCallbacks, kv.ErrUnavailable.
func (s *Service) Expect(ctx context.Context, tenant, callbackURL string) error {
	now := s.clock()
	sub := subscription.NewCallback(tenant, subscription.Origin(callbackURL), wire.FormatTime(now))
	if _, err := s.store.Get(ctx, tenant, sub.ID); !errors.Is(err, subscription.ErrNotFound) {
		return err
	}
	all, err := s.store.List(ctx, tenant)
	if err != nil {
		return err
	}
	if count(all, true) >= MaxPerTenant {
		return ErrManyCallbacks
	}
	if sub.After, err = s.log.End(ctx); err != nil {
		return err
	}
	return s.store.Ensure(ctx, sub, subscription.State{Key: s.secrets.Key(tenant, sub.ID, subscription.FirstGeneration(now))})
}

// count counts the webhooks of a list, or the callbacks.
func count(all []*subscription.Entry, callbacks bool) int {
	n := 0
	for _, e := range all {
		if e.Callback == callbacks {
			n++
		}
	}
	return n
}

// Secret is the secret of a generation. It is told once: to who registers or rotates.
func (s *Service) Secret(tenant, id string, generation int) string {
	return s.secrets.Secret(tenant, id, generation)
}

// Unregister ends a webhook; what is waiting for it is dropped. Errors:
// subscription.ErrNotFound.
func (s *Service) Unregister(ctx context.Context, tenant, id string) error {
	return s.store.Delete(ctx, tenant, id)
}

// Rotate makes a new secret; the one before signs beside it for the overlap. Errors:
// subscription.ErrNotFound.
func (s *Service) Rotate(ctx context.Context, tenant, id string, overlap time.Duration) (*subscription.Entry, error) {
	return s.store.Rotate(ctx, s.secrets, tenant, id, s.clock(), overlap)
}

// List gives the webhooks of a tenant by id.
func (s *Service) List(ctx context.Context, tenant string) ([]*subscription.Entry, error) {
	return s.store.List(ctx, tenant)
}

// Pending gives the runs of which something waits for a webhook. Errors:
// subscription.ErrNotFound.
func (s *Service) Pending(ctx context.Context, tenant, id string) ([]outbox.Pending, error) {
	if _, err := s.store.Get(ctx, tenant, id); err != nil {
		return nil, err
	}
	return s.lanes.List(ctx, tenant, id)
}

// Dead gives what was given up for a webhook. Errors: subscription.ErrNotFound.
func (s *Service) Dead(ctx context.Context, tenant, id string) ([]outbox.Letter, error) {
	if _, err := s.store.Get(ctx, tenant, id); err != nil {
		return nil, err
	}
	return s.dead.List(ctx, tenant, id)
}
