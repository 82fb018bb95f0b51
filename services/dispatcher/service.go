// Package dispatcher creates, executes and ends runs.
//
// A request becomes a start frame (package start); the log hands the run to a
// worker; the executor folds its log, asks the pure machine (package run) what
// comes next, appends that, and performs the effects (package completion for
// model calls); runs that wait are watched over by package sleep.
package dispatcher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/queuetime"
	"waybill.dev/waybill/internal/runlog"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/catalogue"
	"waybill.dev/waybill/services/dispatcher/cleartext"
	"waybill.dev/waybill/services/dispatcher/clients"
	"waybill.dev/waybill/services/dispatcher/create"
	"waybill.dev/waybill/services/dispatcher/credential"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/lease"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/metrics"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/services/dispatcher/quarantine"
	"waybill.dev/waybill/services/dispatcher/queue"
	"waybill.dev/waybill/services/dispatcher/snapshot"
	"waybill.dev/waybill/services/dispatcher/tenantlimit"
	"waybill.dev/waybill/services/dispatcher/timers"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// Config is what an operator sets.
type Config struct {
	Limits machine.Limits
	// MaxRuns bounds the runs executed at a time.
	MaxRuns int
	// Intake bounds the starts that are taken.
	Intake queue.GuardConfig
	// MaxBatch bounds how much of what a run's effects tell at a time goes into one
	// frame of its log.
	MaxBatch int
	// MaxDepth bounds how deep runs are nested.
	MaxDepth int
	// Lease is how long a dispatcher may stay silent before others take over its runs.
	Lease lease.Config
	// AckWait is how long the queue waits for a sign of a delivery; see runlog.AckWait.
	AckWait    time.Duration
	Completion model.Config
	// Keyed are the ids of providers that are asked with a key.
	Keyed []string
	// SelfHosted are the ids of providers on the operator's own servers.
	SelfHosted []string
	// TestSeams lets test keys script the mock provider.
	TestSeams bool
	// Packs bring node types; they were read for those that the host has.
	Packs []*pack.Pack
	// RuntimeCapabilities are the ids that a node may require of the host's runtime.
	RuntimeCapabilities []string
	// Prompts are the prompt templates that nodes may name.
	Prompts PromptConfig
}

// DefaultConfig is right for one process on a small machine.
func DefaultConfig() Config {
	return Config{
		Limits:  machine.Limits{MaxNodeExecutions: 1000, MaxDuration: 24 * time.Hour, MaxParallel: 128},
		MaxRuns: 1024, MaxBatch: 64, MaxDepth: 8,
		Intake: queue.GuardConfig{MaxStarts: 2000, MaxWait: time.Minute},
		Lease:  lease.Config{Duration: 10 * time.Second}, AckWait: runlog.AckWait,
		Completion: model.Config{
			MaxAttempts: 3, Multiplier: 2, Timeout: provider.DefaultTimeouts().Call, Directive: model.Advisory,
			Defaults: model.Defaults{Provider: "sample", Model: "sample-1", MaxTokens: 4000},
		},
	}
}

// runtimeCapability is the form of ids that packs may require.
var runtimeCapability = regexp.MustCompile(`^[a-z][a-zA-Z0-9._-]{0,127}$`)

// The most that an operator may allow a run.
const (
	MaxNodeExecutions = 1_000_000
	MaxRunDuration    = 10 * 366 * 24 * time.Hour
)

// Validate returns all that is wrong, joined.
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
	if c.MaxDepth < 1 {
		bad("dispatcher.maxDepth: %d: needs at least 1", c.MaxDepth)
	}
	if o := c.Prompts.Observability; o != "" && !o.Valid() {
		bad("dispatcher.prompts.observability: %q: needs off, hashed or full", o)
	}
	for _, id := range c.RuntimeCapabilities {
		if !runtimeCapability.MatchString(id) {
			bad("runtime-capability %q: needs letters, digits, dots, dashes and underscores, beginning with a small letter, 128 at most", id)
		}
	}
	if c.Lease.Duration < 200*time.Millisecond {
		bad("lease: %s: needs at least 200ms, so that renewals can keep it", c.Lease.Duration)
	}
	if c.Completion.MaxAttempts < 1 || c.Completion.MaxAttempts > 16 {
		bad("dispatcher.maxRetryAttempts: %d: needs 1 to 16", c.Completion.MaxAttempts)
	}
	if c.Completion.Multiplier < 1 || c.Completion.Multiplier > 8 {
		bad("dispatcher.truncationBudgetMultiplier: %d: needs 1 to 8", c.Completion.Multiplier)
	}
	if d := c.Completion.Directive; d != "" && !d.Valid() {
		bad("reasoning-directive: %q: needs mandatory, advisory or off", d)
	}
	return errors.Join(errs...)
}

// Deps are the collaborators; the caller owns and closes them.
type Deps struct {
	Log       runlog.Log
	Queue     runlog.Queue
	Workflows kv.Store
	Claims    kv.Store
	// Quarantine keeps the records of quarantined runs.
	Quarantine kv.Store
	// Leases keeps which dispatchers are alive.
	Leases kv.Store
	// Peers reaches other dispatchers; nil: there are none.
	Peers Peers
	// Waiting keeps the runs that wait for a slot or a limit, Rates the starts of rate limits; nil:
	// runs are executed in the order of the queue, without limits.
	Waiting, Rates kv.Store
	// TenantLimits are the operator's limits and shares of tenants; nil: none.
	TenantLimits *tenantlimit.Source
	Acceptor     acceptorv1.AcceptorClient
	Redactor     redactorv1.RedactorClient
	EventLog     eventlogv1.EventLogClient
	Providers    *provider.Registry
	// Credentials are the keys that tenants bring; nil: they bring none.
	Credentials *credential.Store
	// Policies say who may ask which models; nil: everybody may ask all.
	Policies *model.Policies
	// Catalogue says what models can do; nil: the built-in one.
	Catalogue *catalogue.Catalogue
	// Tools execute the node types that ask somebody outside who is no model; none
	// where the operator has named nobody.
	Tools tool.Runners
	// Cleartext keeps the clear values of runs whose log is masked; nil: workflows that mark
	// values as sensitive are refused.
	Cleartext *cleartext.Store
	// Snapshots keeps folded states of long runs; nil: every run is folded from its log.
	Snapshots *snapshot.Store
	// Scripts are those of the test seams' provider; nil without them.
	Scripts mock.Scripts
	Clock   func() time.Time
	Logger  *slog.Logger
	// Spans takes the spans of runs; nil: they are not exported.
	Spans engine.Spans
}

// Service is the dispatcher.
type Service struct {
	dispatcherv1.UnimplementedDispatcherServer
	cfg         Config
	deps        Deps
	types       node.Catalog
	definitions *definition.Registry
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
	pool        *queue.Pool
	queue       runlog.Queue     // the scheduler, if Deps.Waiting is set
	scheduler   *queue.Scheduler // nil without Deps.Waiting
	// begins measures how long runs that were handed out take to their first step.
	begins *queuetime.Meter
	intake *queue.Guard
	ready  chan struct{}
	// executing is closed when the pool begins.
	executing chan struct{}
}

// holdResults is how long results of effects are held while the log cannot be reached.
const holdResults = 5 * time.Minute

// begunWithin is the time of which is told how long runs took to begin.
const begunWithin = 200 * time.Millisecond

// New checks the configuration and builds the service; it starts nothing.
func New(cfg Config, d Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Service{cfg: cfg, deps: d, types: node.Builtin().And(d.Tools.Types()...), definitions: definition.New(d.Workflows), metrics: metrics.New(), begins: queuetime.New(begunWithin), intake: queue.NewGuard(cfg.Intake, d.Clock), ready: make(chan struct{}), executing: make(chan struct{})}
	if cfg.TestSeams {
		s.types = s.types.Conformance(cfg.Prompts.TestSecrets)
	}
	s.types = s.types.With(cfg.Packs)
	told := clients.NewTold(d.Redactor)
	s.credentials = clients.Secrets{Told: told, Store: d.Credentials, Logger: d.Logger}
	redactor := clients.Redactor{Client: d.Redactor, Told: told}
	s.redactor = redactor
	var err error
	if s.prompts, err = cfg.prompts(redactor); err != nil {
		return nil, err
	}
	s.watch = timers.New(timers.Config{SweepEvery: 2 * time.Second, Grace: 2 * time.Second}, clients.Index{Client: d.EventLog}, d.Clock, d.Logger)
	secrets := s.secrets()
	cfg.Completion.BYOK = s.byok()
	s.openLimiter()
	s.loop = model.New(cfg.Completion, model.Deps{
		Models: d.Providers, Catalogue: d.Catalogue, Logger: d.Logger, Schemas: clients.NewSchemas(d.Acceptor, d.Clock), Scrubber: redactor.Scrubber,
		Clock: d.Clock, Canned: s.canned(), Keys: s.keys(), Policies: d.Policies, Prompts: s.prompts, Called: s.metrics.Called,
		Limiter: s.limiter, Refused: s.metrics.NoCapacity,
	})
	s.starter = create.New(create.Deps{
		Secrets: secrets, CheckModel: s.loop.Check, BYOK: s.byok(), Policy: s.loop.Policy, DefaultProvider: cfg.Completion.Defaults.Provider,
		Log: d.Log, Claims: d.Claims, Definitions: s.definitions, Redactor: redactor, Cleartext: d.recordStore(), Types: s.types, Prompts: s.prompts.Library,
		Providers: d.Providers.IDs(), MockProviders: s.mockProviders(), MaxDuration: cfg.Limits.MaxDuration, MaxExecutions: cfg.Limits.MaxNodeExecutions, MaxDepth: cfg.MaxDepth, Clock: d.Clock,
		Created: s.metrics.Created,
	})
	s.leases = lease.New(cfg.Lease, d.Leases, d.Clock, d.Logger)
	s.quarantine = quarantine.New(quarantine.DefaultConfig(), d.Quarantine, d.Clock, d.Logger)
	s.snapshots = snapshot.New(snapshot.Deps{Log: d.Log, Store: d.Snapshots, Logger: d.Logger, Done: func(r snapshot.Result) { s.metrics.Snapshot(string(r)) }})
	s.executor = engine.New(engine.Config{Limits: cfg.Limits, AckWait: cfg.AckWait, HoldResults: holdResults, MaxBatch: cfg.MaxBatch}, engine.Deps{
		Log: d.Log, Redactor: redactor, Secrets: secrets, Acceptor: clients.Acceptor{Client: d.Acceptor, Told: told}, Definitions: s.definitions,
		Models: tool.Mux{Runners: s.runners(), Models: s.loop}, Types: s.types, Gate: s.loop.Gate, NodeSecrets: s.loop.Secrets, Policy: s.loop.Policy,
		Cleartext: d.cleartextStore(), Capabilities: cfg.RuntimeCapabilities, Clock: d.Clock, Logger: d.Logger, Wait: s.watch.Schedule, Forget: s.watch.Cancel,
		Spans: d.Spans, Metrics: s.metrics, FirstAppend: s.begins, Children: s.starter,
		Backlog: s.intake.Backlog, Quarantine: s.quarantine, Snapshots: s.snapshots, Leases: s.leases, Peers: s.peers(),
	})
	s.leases.CountRuns(s.executor.Active)
	d.Logger.Info("dispatcher process", "process", s.executor.Process(), "lease", cfg.Lease.Duration)
	s.watch.Bind(s.executor)
	s.quarantine.Bind(s.executor)
	s.openQueue()
	return s, nil
}

// secrets is nil where tenants bring no keys.
func (s *Service) secrets() engine.Secrets {
	if s.deps.Credentials == nil {
		return nil
	}
	return s.credentials
}

// cleartextStore and recordStore return nil without a store: a nil *cleartext.Store in an interface is
// not nil.
func (d Deps) cleartextStore() engine.CleartextStore {
	if d.Cleartext == nil {
		return nil
	}
	return d.Cleartext
}

func (d Deps) recordStore() create.CleartextStore {
	if d.Cleartext == nil {
		return nil
	}
	return d.Cleartext
}

// keys is nil where tenants bring none.
func (s *Service) keys() model.Keys {
	if s.deps.Credentials == nil {
		return nil
	}
	return s.credentials
}

// canned makes the provider of a run's configurable.mockProvider; nil without
// test seams.
func (s *Service) canned() func(json.RawMessage) (provider.Provider, error) {
	if !s.cfg.TestSeams {
		return nil
	}
	return func(spec json.RawMessage) (provider.Provider, error) {
		var m struct {
			ID     string          `json:"id"`
			Config json.RawMessage `json:"config"`
		}
		if err := strictjson.Read(spec, &m); err != nil {
			return nil, fmt.Errorf("want {id, config?}: %w", err)
		}
		return mock.Canned(m.ID, m.Config)
	}
}

func (s *Service) mockProviders() []string {
	if !s.cfg.TestSeams {
		return nil
	}
	return mock.CannedIDs()
}

// Collectors are the service's metrics.
func (s *Service) Collectors() []prometheus.Collector {
	begins := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "waybill", Subsystem: "dispatcher", Name: "begin_delay_seconds",
		Help: "How long runs take from being handed to this process to their first step, as measured over the last moment.",
	}, func() float64 { return s.begins.Mean(s.deps.Clock()).Seconds() })
	return append(append(s.metrics.Collectors(s.executor.Active, s.queue.Depth), s.intake.Collectors()...), append(s.deskCollectors(), begins, metrics.QuarantinedRuns(s.quarantine.Counts))...)
}

// Register puts the handlers on a server.
func (s *Service) Register(r grpc.ServiceRegistrar) { dispatcherv1.RegisterDispatcherServer(r, s) }

// Ready is closed once stored definitions have been read.
func (s *Service) Ready() <-chan struct{} { return s.ready }

// Run executes runs until ctx ends; those in execution are handed back. Call Drain before to let
// their effects end.
func (s *Service) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	loop := func(name string, run func(ctx context.Context) error) {
		g.Go(func() error { return lifecycle.Restart(ctx, s.deps.Logger, name, run) })
	}
	loop("definitions", s.followDefinitions)
	select {
	case <-s.ready: // a run may be pinned to any stored definition
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
	loop("intake", func(ctx context.Context) error { return s.intake.Run(ctx, s.queue) })
	loop("tenant limits", s.deps.TenantLimits.Run)
	close(s.executing)
	g.Go(func() error { return s.execute(ctx) })
	return g.Wait()
}

// unready is the channel to close once definitions have been read; nil if it is closed.
func (s *Service) unready() chan<- struct{} {
	select {
	case <-s.ready:
		return nil
	default:
		return s.ready
	}
}

// followRetry is the pause after the definitions' store was lost.
const followRetry = 500 * time.Millisecond

func (s *Service) followDefinitions(ctx context.Context) error {
	for {
		err := s.definitions.Run(ctx, s.unready())
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.deps.Logger.Warn("workflow definitions not followed; trying again", "error", err)
		t := time.NewTimer(followRetry)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
	}
}
