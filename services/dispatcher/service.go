// Package dispatcher creates, executes and ends runs.
//
// A request becomes a start frame (package create). The log delivers the run to a worker. The
// executor (package engine) folds the run's log, gets the next events from the pure state machine
// (package machine), appends them, and performs the effects (package model for model calls).
// Package timers wakes waiting runs.
package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/queuetime"
	"waybill.dev/waybill/internal/retry"
	"waybill.dev/waybill/internal/runlog"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/clients"
	"waybill.dev/waybill/services/dispatcher/create"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/engine/lease"
	"waybill.dev/waybill/services/dispatcher/engine/quarantine"
	"waybill.dev/waybill/services/dispatcher/engine/snapshot"
	"waybill.dev/waybill/services/dispatcher/engine/timers"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/metrics"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
	"waybill.dev/waybill/services/dispatcher/queue"
	"waybill.dev/waybill/services/dispatcher/retention"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// Config holds the operator's settings.
type Config struct {
	Limits machine.Limits
	// MaxRuns limits the runs executed concurrently.
	MaxRuns int
	// Intake limits accepted starts.
	Intake queue.GuardConfig
	// MaxBatch limits the events of a run's concurrent effects in one frame of its log.
	MaxBatch int
	// MaxDepth limits the nesting of runs.
	MaxDepth int
	// Lease is how long a dispatcher may stay silent before others take over its runs.
	Lease lease.Config
	// AckWait is how long the queue waits for progress of a delivery; see runlog.AckWait.
	AckWait    time.Duration
	Completion model.Config
	// Keyed are the ids of providers that are called with a key.
	Keyed []string
	// SelfHosted are the ids of providers on the operator's own servers.
	SelfHosted []string
	// Packs add node types. They were loaded for the host's types.
	Packs []*pack.Pack
	// RuntimeCapabilities are the runtime capabilities that nodes may require.
	RuntimeCapabilities []string
	// NoAIEnvelope switches the capability host.aiEnvelope off: nodes that emit envelopes are rejected.
	NoAIEnvelope bool
	// Prompts configures prompt templates.
	Prompts PromptConfig
	// Retention is how long runs are kept after their end if neither their workflow nor their tenant
	// sets it; 0 means without limit. RetentionRate limits the erased runs per second.
	Retention     time.Duration
	RetentionRate float64
}

// DefaultConfig suits one process on a small machine.
func DefaultConfig() Config {
	return Config{
		Limits:   machine.Limits{MaxNodeExecutions: 1000, MaxDuration: 24 * time.Hour, MaxParallel: 128},
		MaxRuns:  1024,
		MaxBatch: 64,
		MaxDepth: 8,

		RetentionRate: 50,
		Intake:        queue.GuardConfig{MaxStarts: 2000, MaxWait: time.Minute},
		Lease:         lease.Config{Duration: 10 * time.Second},
		AckWait:       runlog.AckWait,
		Completion: model.Config{
			MaxAttempts: 3,
			Multiplier:  2,
			Timeout:     provider.DefaultTimeouts().Call,
			Directive:   model.Advisory,
			Defaults:    model.Defaults{Provider: "sample", Model: "sample-1", MaxTokens: 4000},
		},
	}
}

// runtimeCapability is the format of ids that packs may require.
var runtimeCapability = regexp.MustCompile(`^[a-z][a-zA-Z0-9._-]{0,127}$`)

// CheckRuntimeCapability rejects ids of another format.
func CheckRuntimeCapability(id string) error {
	if !runtimeCapability.MatchString(id) {
		return fmt.Errorf("runtime-capability %q: needs letters, digits, dots, dashes and underscores, beginning with a small letter, 128 at most", id)
	}
	return nil
}

// Upper limits of the operator's settings.
const (
	MaxNodeExecutions = 1_000_000
	MaxRunDuration    = 10 * 366 * 24 * time.Hour
	// MaxRetryAttempts and MaxTruncationMultiplier are those of the protocol's capabilities.
	MaxRetryAttempts        = 16
	MaxTruncationMultiplier = 8
)

// Validate returns all problems, joined.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if n := c.Limits.MaxNodeExecutions; n < 1 || n > MaxNodeExecutions {
		bad("dispatcher.limits.maxNodeExecutions: %d: needs 1 to %d", n, MaxNodeExecutions)
	}
	if d := c.Limits.MaxDuration; d < time.Second || d > MaxRunDuration {
		bad("dispatcher.limits.maxRunDuration: %s: needs 1s to %s", d, MaxRunDuration)
	}
	if c.Limits.MaxParallel < 1 || c.MaxRuns < 1 || c.MaxBatch < 1 {
		bad("dispatcher: maxParallel %d, maxRuns %d and maxBatch %d need at least 1", c.Limits.MaxParallel, c.MaxRuns, c.MaxBatch)
	}
	if c.Intake.MaxStarts < 0 || c.Intake.MaxWait < 0 {
		bad("dispatcher.intake: maxStarts %d and maxWait %s need at least 0", c.Intake.MaxStarts, c.Intake.MaxWait)
	}
	if r := c.Retention; r != 0 && (r < workflow.MinRetention || r > workflow.MaxRetention) {
		bad("retention: %s: needs %s to %s, or 0 for no limit", r, workflow.MinRetention, workflow.MaxRetention)
	}
	if c.RetentionRate <= 0 {
		bad("retentionRate: %g: needs more than 0", c.RetentionRate)
	}
	if c.MaxDepth < 1 {
		bad("dispatcher.maxDepth: %d: needs at least 1", c.MaxDepth)
	}
	if o := c.Prompts.Observability; o != "" && !o.Valid() {
		bad("dispatcher.prompts.observability: %q: needs off, hashed or full", o)
	}
	for _, id := range c.RuntimeCapabilities {
		errs = append(errs, CheckRuntimeCapability(id))
	}
	if c.Lease.Duration < 200*time.Millisecond {
		bad("lease: %s: needs at least 200ms, so that renewals can keep it", c.Lease.Duration)
	}
	if c.Completion.MaxAttempts < 1 || c.Completion.MaxAttempts > MaxRetryAttempts {
		bad("dispatcher.maxRetryAttempts: %d: needs 1 to %d", c.Completion.MaxAttempts, MaxRetryAttempts)
	}
	if c.Completion.Multiplier < 1 || c.Completion.Multiplier > MaxTruncationMultiplier {
		bad("dispatcher.truncationBudgetMultiplier: %d: needs 1 to %d", c.Completion.Multiplier, MaxTruncationMultiplier)
	}
	if d := c.Completion.Directive; d != "" && !d.Valid() {
		bad("reasoning-directive: %q: needs mandatory, advisory or off", d)
	}
	return errors.Join(errs...)
}

// Service is the dispatcher.
type Service struct {
	dispatcherv1.UnimplementedDispatcherServer
	cfg         Config
	deps        Deps
	types       *node.Live
	definitions *definition.Registry
	schemas     *clients.Schemas
	credentials clients.Secrets
	redactor    clients.Redactor
	starter     *create.Starter
	prompts     model.Prompts
	limiter     *limit.Limiter
	loop        *model.Loop
	executor    *engine.Executor
	watch       *timers.Watch
	quarantine  *quarantine.List
	leases      *lease.Table
	metrics     *metrics.Metrics
	snapshots   *snapshot.Keeper
	eraser      *retention.Eraser
	archiver    *retention.Archiver
	holds       *retention.Holds   // nil without Deps.Retention
	sweeper     *retention.Sweeper // nil without holds or an eraser
	pool        *queue.Pool
	queue       runlog.Queue     // the scheduler, if set
	scheduler   *queue.Scheduler // nil without Deps.Waiting
	// begins measures the time from a run's delivery to its first step.
	begins *queuetime.Meter
	intake *queue.Guard
	ready  chan struct{}
	// executing is closed when the pool starts.
	executing chan struct{}
	// loading counts the sources whose definitions are still being registered.
	loading   atomic.Int32
	fileNotes fileNotes
}

// holdResults is how long results of effects are kept while they cannot be recorded. Runs that were
// handed back earlier would repeat their calls, again and again during a long outage.
const holdResults = 24 * time.Hour

// beginWindow is the period over which the begin delay is measured.
const beginWindow = 200 * time.Millisecond

// New validates the configuration and builds the service without starting it.
func New(cfg Config, d Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Service{
		cfg:         cfg,
		deps:        d,
		types:       &node.Live{},
		schemas:     clients.NewSchemas(d.Acceptor, d.Clock),
		definitions: definition.New(d.Workflows),
		metrics:     metrics.New(cfg.Completion.Providers.APIName),
		begins:      queuetime.New(beginWindow),
		intake:      queue.NewGuard(cfg.Intake, d.Clock),
		ready:       make(chan struct{}),
		executing:   make(chan struct{}),
	}
	s.types.Set(s.typesWith(cfg.Packs))
	registrations := clients.NewRegistrations(d.Redactor)
	s.credentials = clients.Secrets{Registrations: registrations, Store: d.Credentials, Logger: d.Logger}
	s.redactor = clients.Redactor{Client: d.Redactor, Registrations: registrations}
	if err := s.openPrompts(s.redactor); err != nil {
		return nil, err
	}
	s.leases = lease.New(cfg.Lease, d.Leases, d.Clock, d.Logger)
	sweep := timers.Config{SweepEvery: 2 * time.Second, Grace: 100 * time.Millisecond, Process: s.leases.Process}
	s.watch = timers.New(sweep, clients.Index{Client: d.EventLog}, d.Clock, d.Logger)
	s.quarantine = quarantine.New(quarantine.DefaultConfig(), d.Quarantine, d.Clock, d.Logger)
	s.snapshots = snapshot.New(snapshot.Deps{
		Log:    d.Log,
		Store:  d.Snapshots,
		Logger: d.Logger,
		Done:   func(r snapshot.Result) { s.metrics.Snapshot(string(r)) },
	})
	s.openLimiter()
	s.loop = s.newLoop()
	s.starter = s.newStarter()
	s.eraser = s.newEraser()
	s.archiver = s.newArchiver()
	s.openRetention()
	s.executor = s.newExecutor(registrations)
	s.leases.CountRuns(s.executor.Active)
	d.Logger.Info("dispatcher process", "process", s.executor.Process(), "lease", cfg.Lease.Duration)
	s.watch.Bind(s.executor)
	s.quarantine.Bind(s.executor)
	s.openQueue()
	return s, nil
}

// newLoop returns the loop that calls models.
func (s *Service) newLoop() *model.Loop {
	d, cfg := s.deps, s.cfg.Completion
	cfg.BYOK = s.byok()
	return model.New(cfg, model.Deps{
		Models:    d.Providers,
		Catalogue: d.Catalogue,
		Logger:    d.Logger,
		Schemas:   s.schemas,
		Scrubber:  s.redactor.Scrubber,
		Prompts:   s.prompts,
		Keys:      s.keys(),
		Policies:  d.Policies,
		Assets:    clients.Assets{Client: d.Acceptor},
		Calls: model.Calls{
			Limiter:   s.limiter,
			OnCall:    s.metrics.Called,
			OnRefused: s.metrics.NoCapacity,
			Canned:    d.Seams.Canned(),
		},
		Clock: d.Clock,
	})
}

// newStarter returns the starter of runs.
func (s *Service) newStarter() *create.Starter {
	d := s.deps
	return create.New(create.Deps{
		Storage: create.Storage{
			Log:         d.Log,
			Claims:      d.Claims,
			Definitions: s.definitions,
			Cleartext:   d.recordStore(),
		},
		Redaction: create.Redaction{Redactor: s.redactor, Secrets: s.secrets()},
		Checks: create.Checks{
			Types:      s.types,
			CheckModel: s.loop.Check,
			Policy:     s.loop.Policy,
			Prompts:    s.prompts.Library,

			NoAIEnvelope: s.cfg.NoAIEnvelope,
		},
		Models: create.Models{
			Providers:       d.Providers.IDs(),
			BYOK:            s.byok(),
			DefaultProvider: s.cfg.Completion.Defaults.Provider,
			MockProviders:   d.Seams.MockProviders(),
		},
		Limits: create.Limits{
			MaxDuration:   s.cfg.Limits.MaxDuration,
			MaxExecutions: s.cfg.Limits.MaxNodeExecutions,
			MaxDepth:      s.cfg.MaxDepth,
		},
		Clock:   d.Clock,
		Created: s.metrics.Created,
	})
}

// newExecutor returns the executor of runs.
func (s *Service) newExecutor(registrations *clients.Registrations) *engine.Executor {
	d := s.deps
	calls := tool.Router{
		Runners: d.Seams.Runners(d.Tools, s.prompts),
		Models:  s.loop,
		Limits:  d.ToolLimits.Current,
		Acquire: s.admitCall,
	}
	return engine.New(engine.Config{
		Limits:      s.cfg.Limits,
		AckWait:     s.cfg.AckWait,
		HoldResults: holdResults,
		MaxBatch:    s.cfg.MaxBatch,
	}, engine.Deps{
		Storage: engine.Storage{
			Log:         d.Log,
			Definitions: s.definitions,
			Cleartext:   d.cleartextStore(),
			Snapshots:   s.snapshots,
			Quarantine:  s.quarantine,
		},
		Services: engine.Services{
			Redactor: s.redactor,
			Secrets:  s.secrets(),
			Acceptor: clients.Acceptor{Client: d.Acceptor, Registrations: registrations},
			Models:   calls,
			Limiter:  calls,
			Children: s.starter,
		},
		Rules: engine.Rules{
			Types:        s.types,
			Gate:         s.loop.Gate,
			NodeSecrets:  s.loop.Secrets,
			Policy:       s.loop.Policy,
			Capabilities: s.cfg.RuntimeCapabilities,
			NoAIEnvelope: s.cfg.NoAIEnvelope,
		},
		Processes: engine.Processes{Leases: s.leases, Peers: s.peers(), Queued: s.isQueued},
		Timers:    engine.Timers{Wait: s.watch.Schedule, Forget: s.watch.Cancel},
		Telemetry: engine.Telemetry{
			Logger:      d.Logger,
			Spans:       d.Spans,
			APIs:        s.cfg.Completion.Providers.APIName,
			Requested:   s.loop.Requested,
			Metrics:     s.metrics,
			FirstAppend: s.begins,
		},
		Clock: d.Clock,
	})
}

// secrets returns a nil interface without a store of keys.
func (s *Service) secrets() engine.Secrets {
	if s.deps.Credentials == nil {
		return nil
	}
	return s.credentials
}

// keys returns a nil interface without a store of keys.
func (s *Service) keys() model.Keys {
	if s.deps.Credentials == nil {
		return nil
	}
	return s.credentials
}

// Collectors returns the service's metrics.
func (s *Service) Collectors() []prometheus.Collector {
	begins := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "waybill", Subsystem: "dispatcher", Name: "begin_delay_seconds",
		Help: "Time from the delivery of a run to this process until its first step, measured over the last 200 ms.",
	}, func() float64 { return s.begins.Mean(s.deps.Clock()).Seconds() })
	return slices.Concat(
		s.metrics.Collectors(s.executor.Active, s.queue.Depth), s.intake.Collectors(), s.schedulerCollectors(),
		[]prometheus.Collector{begins, metrics.QuarantinedRuns(s.quarantine.Counts), metrics.Retention{Sweeper: s.sweeper}},
	)
}

// Register registers the handlers with a server.
func (s *Service) Register(r grpc.ServiceRegistrar) { dispatcherv1.RegisterDispatcherServer(r, s) }

// Ready is closed after the stored definitions were read.
func (s *Service) Ready() <-chan struct{} { return s.ready }

// Executes is closed when runs are carried out.
func (s *Service) Executes() <-chan struct{} { return s.executing }

// Loading says that definitions are being registered, until loaded is called: a workflow that is
// not found may be one of them.
func (s *Service) Loading() (loaded func()) {
	s.loading.Add(1)
	return sync.OnceFunc(func() { s.loading.Add(-1) })
}

// retryLoading is the Retry-After while definitions are being registered.
const retryLoading = time.Second

// unlessLoading replaces the error about a workflow that may still be loaded. It is not final, so it
// is not kept as the answer to an idempotency key.
func (s *Service) unlessLoading(err error) error {
	if fault.CodeOf(err) != fault.WorkflowNotFound || s.loading.Load() == 0 && s.readyChannel() == nil {
		return err
	}
	return fault.New(fault.ServiceUnavailable, "the host is loading its workflows; try again").After(retryLoading).Wrap(err)
}

// Run executes runs until ctx ends, then hands them back. Call Drain before, to let their effects
// end.
func (s *Service) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	loop := func(name string, run func(ctx context.Context) error) {
		g.Go(func() error { return lifecycle.Restart(ctx, s.deps.Logger, name, run) })
	}
	loop("definitions", s.followDefinitions)
	select {
	case <-s.ready: // runs may be pinned to any stored definition
	case <-ctx.Done():
		return g.Wait()
	}
	if err := s.openLease(ctx); err != nil {
		return errors.Join(err, g.Wait())
	}
	loop("leases", func(ctx context.Context) error { return s.leases.Run(ctx, successor{s}) })
	loop("provider limits", s.shareLimits)
	loop("announcements", s.executor.Announce)
	loop("timers", s.watch.Run)
	loop("quarantine", s.quarantine.Run)
	loop("snapshots", s.snapshots.Run)
	if s.eraser != nil {
		loop("erasures", s.eraser.Run)
	}
	if s.sweeper != nil {
		loop("retention", s.sweeper.Run)
		loop("owner of retention", s.ownRetention)
	}
	loop("intake", func(ctx context.Context) error { return s.intake.Run(ctx, s.queue) })
	loop("tenant limits", s.deps.TenantLimits.Run)
	loop("tool limits", s.deps.ToolLimits.Run)
	close(s.executing)
	g.Go(func() error { return s.execute(ctx) })
	return g.Wait()
}

// readyChannel returns the channel to close after definitions were read; nil if it is closed.
func (s *Service) readyChannel() chan<- struct{} {
	select {
	case <-s.ready:
		return nil
	default:
		return s.ready
	}
}

// watchRetry is the pause before watching the definitions again.
const watchRetry = 500 * time.Millisecond

func (s *Service) followDefinitions(ctx context.Context) error {
	for range retry.Every(watchRetry).Tries(ctx) {
		err := s.definitions.Run(ctx, s.readyChannel())
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.deps.Logger.Warn("workflow definitions not followed; trying again", "error", err)
	}
	return ctx.Err()
}
