// Package eventlog is the read model of the run log: it follows the log into a
// store and answers reads from there.
//
// Every read sees what was acknowledged before it: a read of a run first asks
// the log for the run's last position, and waits until the store has it. What
// the store holds can always be had again from the log, so a store that is
// damaged is emptied and filled anew while reads answer "try again".
//
// The parts: ingest applies the log, project folds it, store keeps it, hub
// tells followers; the files of this package are the RPCs, one group each.
package eventlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/runlog"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/services/eventlog/hub"
	"waybill.dev/waybill/services/eventlog/ingest"
	"waybill.dev/waybill/services/eventlog/store"
)

// Config bounds the service. Start from DefaultConfig.
type Config struct {
	// FreshTimeout is how long a read waits for the store to reach the log.
	FreshTimeout time.Duration
	// HotBytes bounds the memory for runs that are on their way.
	HotBytes int
	// ViewBytes bounds the memory for rendered snapshots and their states.
	ViewBytes int
	// FollowQueue is how many frames wait for one follower before it must read
	// on from the store.
	FollowQueue int
}

// DefaultConfig is right for a process with half a gigabyte of memory.
func DefaultConfig() Config {
	return Config{FreshTimeout: 5 * time.Second, HotBytes: 64 << 20, ViewBytes: 64 << 20, FollowQueue: 256}
}

// Validate names everything that is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	if c.FreshTimeout <= 0 {
		errs = append(errs, fmt.Errorf("eventlog.fresh_timeout: %s: must be positive (try 5s)", c.FreshTimeout))
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

// Log is what the service needs of the run log.
type Log interface {
	runlog.Reader
	runlog.Follower
}

// Deps are the collaborators; the caller owns and closes them.
type Deps struct {
	Log    Log
	Store  store.Store
	Logger *slog.Logger
	// Clock tells when a bundle was made; nil: time.Now.
	Clock func() time.Time
}

// Service answers reads. Make it with New.
type Service struct {
	eventlogv1.UnimplementedEventLogServer

	cfg    Config
	clock  func() time.Time
	log    Log
	store  store.Store
	slog   *slog.Logger
	hub    *hub.Hub
	ingest *ingest.Ingester
	views  *views
}

// New checks and builds; it starts nothing.
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
	s := &Service{clock: d.Clock, cfg: cfg, log: d.Log, store: d.Store, slog: d.Logger, hub: hub.New(cfg.FollowQueue)}
	s.views = newViews(d.Store, cfg.ViewBytes)
	s.ingest = ingest.New(d.Log, d.Store, s.hub, cfg.HotBytes, s.views.clear, d.Logger)
	return s, nil
}

// Register puts the handlers on a server.
func (s *Service) Register(r grpc.ServiceRegistrar) { eventlogv1.RegisterEventLogServer(r, s) }

// Run follows the log until ctx ends; then it ends the streams. A service runs
// once.
func (s *Service) Run(ctx context.Context) error {
	defer s.hub.Close()
	return s.ingest.Run(ctx)
}

// Ready is nil when the store keeps up with the log, and says why not otherwise.
func (s *Service) Ready() error { return s.ingest.Ready() }

// Compare looks whether the log still has what was read of it. It is for a host whose log's
// server is another's, and is called every second.
func (s *Service) Compare(ctx context.Context) error { return s.ingest.Compare(ctx) }

// Lost counts the frames at the end of the log that this service has read and the log has no
// more. Those that are there again do not count.
func (s *Service) Lost() uint64 { return s.ingest.Stats().Lost }
