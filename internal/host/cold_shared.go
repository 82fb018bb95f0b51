package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/internal/runlog/cold/postgres"
	"waybill.dev/waybill/internal/s3bucket"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/services/dispatcher"
	"waybill.dev/waybill/services/gateway/webhook"
)

// ColdStore locates the cold store of a host in several processes, which all of them read.
type ColdStore struct {
	// URLFile has the URL of a PostgreSQL database; empty: the host has no cold store.
	URLFile     string
	Schema      string
	Connections int
	// Bucket has the contents of the runs, as s3://BUCKET/PREFIX; empty stores them in the database.
	Bucket string
}

// DefaultColdStore are the settings without flags.
func DefaultColdStore() ColdStore {
	return ColdStore{Schema: postgres.DefaultSchema, Connections: postgres.DefaultMaxConns}
}

func (o *ColdStore) config() postgres.Config {
	return postgres.Config{URLFile: o.URLFile, Schema: o.Schema, MaxConns: o.Connections}
}

// Check returns all errors in the values, joined. It does not read the file.
func (o *ColdStore) Check() error {
	var errs []error
	if err := o.config().Check(); err != nil {
		errs = append(errs, fmt.Errorf("--cold-postgres-schema, --cold-postgres-connections: %w", err))
	}
	if o.Bucket != "" {
		if err := s3bucket.Check(o.Bucket); err != nil {
			errs = append(errs, fmt.Errorf("--cold-bucket: %w", err))
		}
		if o.URLFile == "" {
			errs = append(errs, errors.New("--cold-bucket: the index of the bucket is in PostgreSQL; give --cold-postgres-url-file, too"))
		}
	}
	return errors.Join(errs...)
}

// Validate returns all errors, joined.
func (o *ColdStore) Validate() error {
	errs := []error{o.Check()}
	if o.URLFile != "" {
		if err := o.config().Validate(); err != nil {
			errs = append(errs, fmt.Errorf("--cold-postgres-url-file: %w", err))
		}
	}
	return errors.Join(errs...)
}

// coldBucket is a bucket with the batches of a cold store.
type coldBucket struct{ *s3bucket.Bucket }

func (b coldBucket) Put(ctx context.Context, name string, data []byte) error {
	return b.Bucket.Put(ctx, name, "application/octet-stream", data)
}

func (b coldBucket) Range(ctx context.Context, name string, at, size int64) ([]byte, error) {
	data, err := b.Bucket.Range(ctx, name, at, size)
	if errors.Is(err, s3bucket.ErrNotFound) {
		err = fmt.Errorf("%w: %w", postgres.ErrNoObject, err)
	}
	return data, err
}

// openShared opens the cold store of a host in several processes; nil without one. Neither the database
// nor the bucket need be reachable.
func (c *core) openShared(ctx context.Context, o *ColdStore) (*postgres.Store, error) {
	if o.URLFile == "" {
		return nil, nil //nolint:nilnil // see above
	}
	cfg := o.config()
	cfg.Logger = c.log
	if o.Bucket != "" {
		b, err := s3bucket.Open(ctx, o.Bucket, "cold store")
		if err != nil {
			return nil, exit.Usagef("--cold-bucket: %w", err)
		}
		cfg.Bucket = coldBucket{b}
	}
	store, err := postgres.Open(ctx, cfg)
	if err != nil {
		return nil, exit.Usagef("--cold-postgres-url-file: %w", err)
	}
	c.later(func() { _ = store.Close() })
	c.tiers.faults = cold.NewFaults(c.log)
	return store, nil
}

// readShared reads sealed runs from the cold store, if there is one. Only dispatchers erase.
func (c *core) readShared(ctx context.Context, o *ColdStore) error {
	store, err := c.openShared(ctx, o)
	if err != nil || store == nil {
		return err
	}
	c.tiers.store = store
	c.tiers.log = cold.NewLog(c.stores.Log, store, c.eventLogsPast, c.tiers.faults)
	return nil
}

// sealShared reads sealed runs from the cold store of a dispatcher, and prepares to seal others.
func (p *process) sealShared(ctx context.Context, o *DispatcherProcess) error {
	window, err := hotWindow(o.HotWindow)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	store, err := p.openShared(ctx, &o.Cold)
	if err != nil || store == nil {
		return err
	}
	if err := p.guard(window); err != nil {
		return err
	}
	t := &p.tiers
	t.store = store
	t.log = cold.NewLog(p.stores.Log, store, p.eventLogsPast, t.faults)
	t.log.Doubt()
	p.coldCheck = &coldCheck{hot: p.stores.Log, store: store, log: t.log, logger: p.log, giveUp: o.GiveUpSealed}
	t.sealer = cold.NewSealer(window, cold.SealerDeps{
		Log: p.stores.Log, Store: store, Past: p.sharedPast, Whole: p.coldCheck.whole, Clock: time.Now, Logger: p.log,
	})
	p.registry.MustRegister(p.coldCollectors()...)
	return nil
}

// sealInTurn seals while this process is the first dispatcher with a lease. Two that seal for a moment
// repeat each other's steps, which changes nothing. Each dispatcher erases, so each compares the store with
// the log.
func (p *process) sealInTurn(s *dispatcher.Service) {
	sealer := p.tiers.sealer
	if sealer == nil {
		return
	}
	p.group.Start(lifecycle.Part{Name: "cold store", Run: func(ctx context.Context) error {
		return lifecycle.Restart(ctx, p.log, "cold store", p.coldCheck.watch)
	}})
	p.group.Start(lifecycle.Part{Name: "sealing", Run: func(ctx context.Context) error {
		return lifecycle.Restart(ctx, p.log, "sealing", func(ctx context.Context) error {
			end := func() {}
			defer func() { end() }()
			owns := false
			return s.FollowRank(ctx, func(rank, _ int) {
				if owns == (rank == 0) {
					return
				}
				owns = rank == 0
				end()
				end = func() {}
				if owns {
					end = startSealer(ctx, sealer)
				}
			})
		})
	}})
}

// startSealer seals until end is called.
func startSealer(ctx context.Context, s *cold.Sealer) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	s.Forget()
	go func() {
		defer close(ended)
		_ = s.Run(ctx) // the end of ctx
	}()
	return func() { cancel(); <-ended }
}

const (
	// pastEvery is how often event logs report their position, pastLimit how long it is waited for.
	pastEvery = 50 * time.Millisecond
	pastLimit = 10 * time.Second
	// pastAnswers is how many answers in a row must be past a position. Calls go to the event logs in
	// turn, so these are the answers of all of them.
	pastAnswers = 16
)

// eventLogsPast returns when the event logs have read the log up to a position. Errors:
// runlog.ErrUnavailable. An event log that is down then rebuilds its read model if it needs a run that was
// removed since.
func (c *core) eventLogsPast(ctx context.Context, pos uint64) error {
	if c.clients.EventLog == nil {
		return fmt.Errorf("%w: this process does not call event logs", runlog.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(ctx, pastLimit)
	defer cancel()
	for behind, answers := int64(0), 0; answers < pastAnswers; {
		st, err := c.clients.EventLog.GetReadModelStatus(ctx, &eventlogv1.GetReadModelStatusRequest{}, grpc.WaitForReady(true))
		switch {
		case err != nil && ctx.Err() != nil && behind > 0:
			return fmt.Errorf("%w: an event log is at %d of the log, not at %d", runlog.ErrUnavailable, behind, pos)
		case err != nil:
			return fmt.Errorf("%w: position of the event logs: %w", runlog.ErrUnavailable, err)
		case uint64(st.GetApplied()) >= pos: //nolint:gosec // G115: not negative
			answers++
			continue
		}
		behind, answers = st.GetApplied(), 0
		if !lifecycle.Wait(ctx, pastEvery) {
			return fmt.Errorf("%w: an event log is at %d of the log, not at %d", runlog.ErrUnavailable, behind, pos)
		}
	}
	return nil
}

// sharedPast returns when the event logs and the feed of the webhooks are past a position.
func (p *process) sharedPast(ctx context.Context, pos uint64) error {
	if err := p.eventLogsPast(ctx, pos); err != nil {
		return err
	}
	return webhook.Past(ctx, p.stores.WebhookRecords(), pos)
}
