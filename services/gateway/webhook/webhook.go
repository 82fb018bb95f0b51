// Package webhook delivers the events of runs to subscribed URLs, and the questions of runs
// to their callbackUrl. Delivery is at least once, in the order of each run.
//
//	run log → feeder → lanes → worker → the receiver
//	     subscription.View ┘      └ dead letters
//
// The outbox holds no events. A lane records how far one run was delivered to one
// subscription; the events stay in the run log. Runs never wait for deliveries.
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
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// Config is the operator's configuration.
type Config struct {
	// HostKey is secret and the same on all replicas. Webhook secrets derive from it.
	HostKey []byte
	// Egress decides which URLs may be called.
	Egress egress.Policy
	// Delivery sets limits, timeouts and retries.
	Delivery Policy
}

// Deps are the collaborators; the caller owns and closes them.
type Deps struct {
	Log Log
	// Subscriptions, Lanes and Dead are buckets. Keys of Lanes are created and deleted
	// often; entries of Dead expire.
	Subscriptions, Lanes, Dead kv.Store
	Clock                      func() time.Time
	Logger                     *slog.Logger
	// Resolver and Poster reach the receivers; nil uses the host's network.
	Resolver egress.Resolver
	Poster   Poster
	// Questions renders what is sent to callback URLs.
	Questions QuestionRenderer
}

// Service is the webhooks of a host.
type Service struct {
	guard   *egress.Guard
	store   *subscription.Store
	view    *subscription.View
	secrets *subscription.Secrets
	lanes   *laneStore
	dead    *deadLetters
	feeder  *feeder
	worker  *worker
	counts  *counts
	log     Log
	clock   func() time.Time
	// perTenant limits the webhooks of a tenant, and separately its callback origins.
	perTenant int
}

// feedLease is how long the feeding replica may be silent before another one takes over.
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
		d.Poster = HTTP{Client: guard.Client(cfg.Delivery.Timeout), Policy: cfg.Egress}
	}
	s := &Service{
		guard: guard, secrets: secrets, log: d.Log, clock: d.Clock, counts: &counts{}, perTenant: cfg.Delivery.PerTenant,
		store: subscription.NewStore(d.Subscriptions), view: subscription.NewView(d.Subscriptions, d.Logger),
		lanes: newLaneStore(d.Lanes), dead: newDeadLetters(d.Dead),
	}
	owner, records, limit := rand.Text(), newRunRecords(d.Log), newLaneLimit(cfg.Delivery.PendingRuns)
	s.feeder = &feeder{
		Log: d.Log, KV: d.Subscriptions, View: s.view, Store: s.store, Lanes: s.lanes, Limit: limit, Records: records,
		Owner: owner, Limits: cfg.Delivery.Feed, Lease: feedLease, Clock: d.Clock, Logger: d.Logger, Counts: s.counts,
	}
	s.worker = newWorker(cfg.Delivery, workerDeps{
		Log:       d.Log,
		webhooks:  webhooks{View: s.view, Store: s.store, Secrets: secrets},
		outbox:    outbox{Records: records, Lanes: s.lanes, Limit: limit, Dead: s.dead, Fed: s.feeder.Fed},
		Poster:    d.Poster,
		Questions: d.Questions,
		Owner:     owner,
		Clock:     d.Clock,
		Logger:    d.Logger,
		Counts:    s.counts,
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

// lookupTimeout limits the name lookup when a webhook is registered.
const lookupTimeout = 2 * time.Second

// CheckURL validates a URL and the addresses its name has now. A name without addresses is
// accepted, because each delivery resolves it again. Errors: *egress.MalformedError,
// egress.ErrRefused.
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

// ErrFull means that the tenant has reached its webhook limit.
var ErrFull = errors.New("the tenant has as many webhooks as it may have")

// Register creates a webhook for events appended from now on. The caller has checked the
// URL.
func (s *Service) Register(ctx context.Context, tenant, url string, events []wire.EventType, tags []string) (*subscription.Entry, error) {
	all, err := s.store.List(ctx, tenant)
	if err != nil {
		return nil, err
	}
	if count(all, false) >= s.perTenant {
		return nil, fmt.Errorf("%w: %d", ErrFull, s.perTenant)
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

// ErrManyCallbacks means that the runs of the tenant name too many callback origins.
var ErrManyCallbacks = errors.New("the runs of the tenant name as many origins in callbackUrl as they may name")

// EnsureCallback creates the subscription for a callback URL, unless its origin has one. The
// caller has checked the URL. Errors: ErrManyCallbacks, kv.ErrUnavailable.
func (s *Service) EnsureCallback(ctx context.Context, tenant, callbackURL string) error {
	now := s.clock()
	sub := subscription.NewCallback(tenant, subscription.Origin(callbackURL), wire.FormatTime(now))
	if _, err := s.store.Get(ctx, tenant, sub.ID); !errors.Is(err, subscription.ErrNotFound) {
		return err
	}
	all, err := s.store.List(ctx, tenant)
	if err != nil {
		return err
	}
	if count(all, true) >= s.perTenant {
		return fmt.Errorf("%w: %d", ErrManyCallbacks, s.perTenant)
	}
	if sub.After, err = s.log.End(ctx); err != nil {
		return err
	}
	return s.store.Ensure(ctx, sub, subscription.State{Key: s.secrets.Key(tenant, sub.ID, subscription.FirstGeneration(now))})
}

// count returns the number of webhooks in a list, or of callbacks.
func count(all []*subscription.Entry, callbacks bool) int {
	n := 0
	for _, e := range all {
		if e.Callback == callbacks {
			n++
		}
	}
	return n
}

// Secret returns the secret of a generation. Clients get it only when they register or
// rotate.
func (s *Service) Secret(tenant, id string, generation int) string {
	return s.secrets.Secret(tenant, id, generation)
}

// Unregister deletes a webhook and drops its pending deliveries. Errors:
// subscription.ErrNotFound.
func (s *Service) Unregister(ctx context.Context, tenant, id string) error {
	return s.store.Delete(ctx, tenant, id)
}

// Rotate creates a new secret. The previous one also signs during the overlap. Errors:
// subscription.ErrNotFound.
func (s *Service) Rotate(ctx context.Context, tenant, id string, overlap time.Duration) (*subscription.Entry, error) {
	return s.store.Rotate(ctx, s.secrets, tenant, id, s.clock(), overlap)
}

// List returns the webhooks of a tenant, ordered by id.
func (s *Service) List(ctx context.Context, tenant string) ([]*subscription.Entry, error) {
	return s.store.List(ctx, tenant)
}

// PendingLanes returns the runs with pending deliveries for a webhook. NextAt of each is the earliest
// time that its own wait and the breaker of the webhook allow; zero means now. Errors:
// subscription.ErrNotFound.
func (s *Service) PendingLanes(ctx context.Context, tenant, id string) ([]PendingLane, error) {
	e, err := s.store.Get(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	all, err := s.lanes.List(ctx, tenant, id)
	now := s.clock()
	admits := e.State.Health.Admits(now)
	for i := range all {
		l := &all[i]
		if l.NextAt.Before(admits) {
			l.NextAt = admits
		}
		if !l.NextAt.After(now) {
			l.NextAt = time.Time{}
		}
	}
	return all, err
}

// DeadLetters returns the deliveries given up for a webhook. Errors:
// subscription.ErrNotFound.
func (s *Service) DeadLetters(ctx context.Context, tenant, id string) ([]DeadLetter, error) {
	if _, err := s.store.Get(ctx, tenant, id); err != nil {
		return nil, err
	}
	return s.dead.List(ctx, tenant, id)
}
