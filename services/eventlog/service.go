// Package eventlog is the read model of the run log: it follows the log into a store and serves
// reads from it.
//
// Every read includes what was acknowledged before it. A read of a run first gets the run's last
// position from the log, then waits until the store has reached it. The store can always be rebuilt
// from the log, so a damaged store is emptied and refilled while reads return "retry".
//
// The parts: ingest applies the log, project folds it, store holds it, hub notifies followers. The
// files of this package are the RPCs, one group each.
package eventlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/internal/share"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/eventlog/hub"
	"waybill.dev/waybill/services/eventlog/ingest"
	"waybill.dev/waybill/services/eventlog/store"
)

// Config limits the service. Start from DefaultConfig.
type Config struct {
	// FreshTimeout is how long a read waits for the store to reach the log.
	FreshTimeout time.Duration
	// HotBytes limits the memory for active runs.
	HotBytes int
	// ViewBytes limits the memory for rendered snapshots and their states.
	ViewBytes int
	// FollowQueue is the number of frames queued per follower before it must continue from the
	// store.
	FollowQueue int
	// Words makes the runs of lists searchable by the words of their contents.
	Words bool
	// SearchTimeout is how long a search by words may take.
	SearchTimeout time.Duration
}

// DefaultConfig suits a process with 512 MB of memory.
func DefaultConfig() Config {
	return Config{FreshTimeout: 5 * time.Second, SearchTimeout: 2 * time.Second, HotBytes: 64 << 20, ViewBytes: 64 << 20, FollowQueue: 256}
}

// Validate returns all errors of the configuration.
func (c Config) Validate() error {
	var errs []error
	if c.FreshTimeout <= 0 {
		errs = append(errs, fmt.Errorf("eventlog.fresh_timeout: %s: must be positive (try 5s)", c.FreshTimeout))
	}
	if c.SearchTimeout <= 0 {
		errs = append(errs, fmt.Errorf("eventlog.search_timeout: %s: must be positive (try 2s)", c.SearchTimeout))
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"hot_bytes", c.HotBytes}, {"view_bytes", c.ViewBytes}, {"follow_queue", c.FollowQueue}} {
		if n.value <= 0 {
			errs = append(errs, fmt.Errorf("eventlog.%s: %d: must be positive", n.name, n.value))
		}
	}
	return errors.Join(errs...)
}

// Log is the part of the run log that the service uses.
type Log interface {
	runlog.Reader
	runlog.Follower
}

// Deps are the dependencies; the caller owns and closes them.
type Deps struct {
	Log   Log
	Store store.Store
	// Cold has the frames of sealed runs; nil if there are none.
	Cold cold.Reader
	// Unreadable is called when a sealed run cannot be read; nil disables it.
	Unreadable func(run subject.Run, err error)
	Logger     *slog.Logger
	// Clock returns the creation time of bundles; nil means time.Now.
	Clock func() time.Time
}

// Service serves reads. Create it with New.
type Service struct {
	eventlogv1.UnimplementedEventLogServer

	cfg    Config
	clock  func() time.Time
	log    Log
	store  store.Store
	slog   *slog.Logger
	hub    *hub.Hub
	ingest *ingest.Ingester
	ends   *ends
	views  *views
	// pages and backlogs limit how many pages of events are in memory for one tenant.
	pages, backlogs *share.Turns
}

// Pages of events in memory for one tenant: answers, and what followers are being sent.
const (
	maxPages    = 8
	maxBacklogs = 8
)

// New validates and builds the service; it starts nothing.
func New(cfg Config, d Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if d.Log == nil || d.Store == nil || d.Logger == nil {
		return nil, errors.New("eventlog: Log, Store and Logger are required")
	}
	if d.Clock == nil {
		d.Clock = time.Now
	}
	if d.Unreadable == nil {
		d.Unreadable = func(subject.Run, error) {}
	}
	d.Store = withCold{d.Store, d.Cold, d.Log, d.Unreadable}
	s := &Service{clock: d.Clock, cfg: cfg, log: d.Log, store: d.Store, slog: d.Logger, hub: hub.New(cfg.FollowQueue)}
	s.ends = &ends{ask: d.Log.Newest, limit: cfg.FreshTimeout}
	s.pages, s.backlogs = share.NewTurns(maxPages), share.NewTurns(maxBacklogs)
	s.views = newViews(d.Store, cfg.ViewBytes)
	s.ingest = ingest.New(d.Log, d.Store, s.hub, cfg.HotBytes, s.views.clear, s.views.erase, d.Logger)
	if cfg.Words {
		s.ingest.IndexWords()
	}
	return s, nil
}

// Register registers the handlers on a server.
func (s *Service) Register(r grpc.ServiceRegistrar) { eventlogv1.RegisterEventLogServer(r, s) }

// Run follows the log until ctx ends, then ends the streams. A service runs once.
func (s *Service) Run(ctx context.Context) error {
	defer s.hub.Close()
	var rest sync.WaitGroup
	defer rest.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	rest.Go(func() { s.backfill(ctx) })
	return s.ingest.Run(ctx)
}

// Ready returns nil if the store keeps up with the log, otherwise the reason.
func (s *Service) Ready() error { return s.ingest.Ready() }

// Past returns when the store holds the log up to a position. Errors: runlog.ErrUnavailable if it does
// not get there in time.
func (s *Service) Past(ctx context.Context, pos uint64) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.FreshTimeout)
	defer cancel()
	if err := s.ingest.Wait(ctx, pos); err != nil {
		return fmt.Errorf("%w: the read model is not at %d: %w", runlog.ErrUnavailable, pos, err)
	}
	return nil
}

// Compare checks whether the log still has what was read from it. A host with a log server of
// another operator calls it every second.
func (s *Service) Compare(ctx context.Context) error { return s.ingest.Compare(ctx) }

// Lost counts frames that this service has read from the end of the log and that the log has lost.
// Frames that have returned do not count.
func (s *Service) Lost() uint64 { return s.ingest.Stats().Lost }
