// Package gateway is the public API of the host: REST and gRPC, credentials, discovery.
//
//	HTTP → rest (checks, translation) ┐
//	                                  ├→ auth → engine → dispatcher, event log, acceptor
//	gRPC ─────────────────────────────┘
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"

	"waybill.dev/waybill/console"
	"waybill.dev/waybill/internal/audit"
	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/notify"
	"waybill.dev/waybill/internal/obs/tracing"
	"waybill.dev/waybill/internal/token"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/services/gateway/admission"
	"waybill.dev/waybill/services/gateway/asyncapi"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/discovery"
	"waybill.dev/waybill/services/gateway/engine"
	"waybill.dev/waybill/services/gateway/idempotency"
	"waybill.dev/waybill/services/gateway/interrupttoken"
	"waybill.dev/waybill/services/gateway/openapi"
	"waybill.dev/waybill/services/gateway/redaction"
	"waybill.dev/waybill/services/gateway/rest"
	"waybill.dev/waybill/services/gateway/seam"
	"waybill.dev/waybill/services/gateway/session"
	"waybill.dev/waybill/services/gateway/webhook"
)

// Config is the operator's configuration.
type Config struct {
	Keys []auth.Spec
	REST rest.Config
	// Admission limits concurrent requests and the rate of starts.
	Admission admission.Config
	// Rates limits the rates of requests, and RateFile, if not nil, changes them.
	Rates    admission.RateConfig
	RateFile *admission.RateFile
	// MaxStreams limits open event streams.
	MaxStreams int
	TestSeams  bool
	// Reflection enables gRPC server reflection.
	Reflection bool
	// GRPCStreams limits the open streams of one gRPC connection; 0 means no limit.
	GRPCStreams uint32
	// BaseURL and GRPCEndpoint return the public addresses, which are known once the servers
	// listen.
	BaseURL      func() string
	GRPCEndpoint func() string
	// RunKey keys the derivation of run ids. It is secret and the same on all replicas.
	RunKey []byte
	// InterruptKeys sign the tokens of interrupts; the same for all replicas.
	InterruptKeys token.Keys
	// TokenLifetime is how long the tokens of interrupts are valid; 0 uses the default.
	TokenLifetime time.Duration
	// BasePath is the path prefix of the REST API and the console: empty, or a path such as
	// /a/b. BaseURL ends with it.
	BasePath string
	// StalledAfter is the time without events after which a run counts as stalled; 0
	// disables it.
	StalledAfter time.Duration
	// Console configures the web console; nil disables it. The gateway sets the members that
	// it knows itself.
	Console *session.Config
}

// basePath matches valid base paths. They are used in HTML, links and cookies.
var basePath = regexp.MustCompile(`^(/[A-Za-z0-9][A-Za-z0-9._~-]*)*$`)

// minRunKey is the minimum length of the run key, in bytes.
const minRunKey = 32

// Validate returns all errors, joined.
func (c Config) Validate() error {
	var errs []error
	if len(c.Keys) == 0 {
		errs = append(errs, errors.New("gateway.keys: at least one API key is needed"))
	}
	if c.REST.MaxBodyBytes < 1 {
		errs = append(errs, fmt.Errorf("gateway.maxBodyBytes: %d: needs at least 1", c.REST.MaxBodyBytes))
	}
	if err := c.Admission.Validate(); err != nil {
		errs = append(errs, err)
	}
	if c.MaxStreams < 1 {
		errs = append(errs, fmt.Errorf("gateway.maxStreams: %d: needs at least 1", c.MaxStreams))
	}
	if len(c.RunKey) < minRunKey {
		errs = append(errs, fmt.Errorf("gateway.runKey: needs at least %d bytes", minRunKey))
	}
	if !basePath.MatchString(c.BasePath) {
		errs = append(errs, fmt.Errorf("gateway.basePath: %q: want a path such as /a/b, without a trailing slash", c.BasePath))
	}
	return errors.Join(errs...)
}

// Deps are the collaborators; the caller owns and closes them.
type Deps struct {
	Clients
	Stores
	// Audit is the audit log; nil disables it.
	Audit *audit.Log
	// Webhooks delivers events; nil disables webhooks.
	Webhooks *webhook.Service
	// Spans receives the spans of calls; nil disables them.
	Spans *tracing.Exporter
	// Propagator reads the trace contexts of requests; nil reads W3C Trace Context only.
	Propagator propagation.TextMapPropagator
	// Ready returns why the host cannot serve; nil if it can.
	Ready func() error
	// Warnings returns the problems of a serving host, for the public; nil if there is nothing to
	// ask.
	Warnings func() []string
	Clock    func() time.Time
	Logger   *slog.Logger
}

// Clients call the other services.
type Clients struct {
	Dispatcher dispatcherv1.DispatcherClient
	EventLog   eventlogv1.EventLogClient
	Acceptor   acceptorv1.AcceptorClient
	// Redactor redacts errors and debug bundles.
	Redactor redactorv1.RedactorClient
}

// Stores keep the records of the gateway.
type Stores struct {
	// Annotations stores annotations of runs, and Notices notifies followers of them; nil
	// disables annotations.
	Annotations kv.Store
	Notices     *notify.Hub
	// Desk stores saved views and the assignees of questions; nil disables both.
	Desk kv.Store
	// RateUsage carries what gateways admitted; nil limits each gateway alone.
	RateUsage *notify.Hub
	// AuditKeys stores which keys the audit log has entries about.
	AuditKeys kv.Store
	// Records stores idempotency records for a day.
	Records kv.Store
}

// Service is the gateway.
type Service struct {
	cfg     Config
	answers *redaction.AnswerRedactor
	deps    Deps
	keys    *auth.Keys
	gate    *admission.Gate
	rates   *admission.Rates
	engine  *engine.Service
	closing chan struct{}
	// documents limits large reads of one tenant, over REST and gRPC together.
	documents grpc.UnaryServerInterceptor
	calls     *tracing.Calls
	trace     *traceReader // nil without a propagator
	usage     *audit.Usage // nil without an audit log
	// health is the gRPC health service.
	health *health.Server
	// sessions are the console's; nil without a console.
	sessions *session.Keeper
	// discovery renders the discovery document.
	discovery *discovery.Source
}

// DiscoveryChanged makes the next request of the discovery document compute it again.
func (s *Service) DiscoveryChanged() { s.discovery.Changed() }

// New checks the configuration and builds the service; it starts nothing.
func New(cfg Config, d Deps) (*Service, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	keys, err := auth.NewKeys(cfg.Keys)
	if err != nil {
		return nil, err
	}
	tokens, err := interrupttoken.New(cfg.InterruptKeys)
	if err != nil {
		return nil, fmt.Errorf("gateway.interruptKeys: %w", err)
	}
	sessions, err := cfg.sessions(keys, d.Records, d.Clock)
	if err != nil {
		return nil, err
	}
	described := discovery.Config{
		MaxBodyBytes: cfg.REST.MaxBodyBytes,
		GRPCEndpoint: cfg.GRPCEndpoint,
		TestSeams:    cfg.TestSeams,
		Webhooks:     d.Webhooks != nil,
		Ready:        d.Ready,
	}
	sole := auth.Sole(cfg.Keys)
	gate := admission.NewGate(cfg.Admission, d.Clock, admission.Tenants{Of: keys.Identify, Sole: sole})
	public := engine.Deps{
		Clients: engine.Clients{
			Dispatcher: gate.ObserveStarts(d.Dispatcher),
			EventLog:   d.EventLog,
			Acceptor:   d.Acceptor,
		},
		Redaction: engine.Redaction{
			Texts:   redaction.TenantTexts(d.Redactor),
			Bundles: redaction.BundleExporter{EventLog: d.EventLog, Redactor: d.Redactor},
		},
		Idempotency:   idempotency.New(d.Records, d.Clock),
		Tokens:        tokens,
		TokenLifetime: cfg.TokenLifetime,
		Webhooks:      d.Webhooks,
		Warnings:      d.Warnings,
		Clock:         d.Clock,
	}
	var usage *audit.Usage
	if d.Audit != nil {
		profile := d.Audit.Profile()
		described.Audit, public.AuditLog, public.Recorder = &profile, d.Audit, d.Audit
		usage = audit.NewUsage(d.Audit.Once(), d.Clock, d.Logger)
		keys.Used = func(p *auth.Principal, s auth.Scope, granted bool) { usage.Note(p.Tenant, p.KeyID, string(s), granted) }
	}
	if d.Desk != nil {
		public.Views, public.Assignees = &engine.ViewStore{Store: d.Desk}, &engine.AssigneeStore{Store: d.Desk}
	}
	if d.Annotations != nil {
		described.Annotations = true
		public.Annotations = &engine.AnnotationStore{
			Store:  d.Annotations,
			Hub:    d.Notices,
			Clock:  d.Clock,
			Redact: redaction.RunTexts(d.Dispatcher),
		}
	}
	source := discovery.New(described, d.Dispatcher, d.Acceptor, d.Clock)
	public.Discovery = source
	svc := &Service{
		discovery: source,

		cfg:  cfg,
		deps: d,
		keys: keys,
		gate: gate,

		rates:     admission.NewRates(cfg.Rates, d.Clock),
		trace:     newTraceReader(d.Propagator),
		documents: gate.Documents(),
		answers:   &redaction.AnswerRedactor{Redactor: d.Redactor},
		engine:    engine.New(cfg.engine(!sole), public),
		calls:     &tracing.Calls{Exporter: d.Spans, Roots: true},
		usage:     usage,
		sessions:  sessions,
		health:    health.NewServer(),
		closing:   make(chan struct{}),
	}
	svc.SetServing(true)
	return svc, nil
}

// engine returns the configuration of the API.
func (c Config) engine(shares bool) engine.Config {
	return engine.Config{
		RunKey:       c.RunKey,
		BaseURL:      c.BaseURL,
		StalledAfter: c.StalledAfter,
		MaxStreams:   c.MaxStreams,
		Shares:       shares,
	}
}

// sessions makes the keeper of the console's sessions; nil without a console.
func (c Config) sessions(keys *auth.Keys, ended kv.Store, clock func() time.Time) (*session.Keeper, error) {
	if c.Console == nil {
		return nil, nil //nolint:nilnil // no console, no sessions
	}
	own := *c.Console
	own.Ended = ended
	own.Keys, own.Base, own.MaxBodyBytes, own.StalledAfter = c.InterruptKeys, c.BasePath, c.REST.MaxBodyBytes, c.StalledAfter
	return session.New(own, keys, clock)
}

// MintCode makes a code that signs in to the console once with a key; empty without a
// console.
func (s *Service) MintCode(key string) string {
	if s.sessions == nil {
		return ""
	}
	return s.sessions.Mint(key)
}

// Collectors returns the service's metrics.
func (s *Service) Collectors() []prometheus.Collector {
	return append(s.gate.Collectors(), s.rates.Collectors()...)
}

// LimitRates shares the rate limits with other gateways, and follows the file of limits, until ctx
// ends.
func (s *Service) LimitRates(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	if s.deps.RateUsage != nil && (len(s.cfg.Rates.Rules)+len(s.cfg.Rates.Tenants) > 0 || s.cfg.RateFile != nil) {
		g.Go(func() error { return s.rates.Share(ctx, s.deps.RateUsage) })
	}
	if s.cfg.RateFile != nil {
		g.Go(func() error { return s.cfg.RateFile.Follow(ctx, s.rates) })
	}
	g.Go(func() error {
		<-ctx.Done()
		return ctx.Err()
	})
	return g.Wait()
}

// failStream answers a stream that was rejected.
func (s *Service) failStream(w http.ResponseWriter, log *slog.Logger, err error) {
	rest.WriteError(w, log, s.answers.RedactError(context.Background(), err))
}

// Handler makes the HTTP API over a connection to the public gRPC server.
func (s *Service) Handler(ctx context.Context, conn grpc.ClientConnInterface) (http.Handler, error) {
	streams := &rest.EventStreams{
		Engine: openwopv1.NewEngineClient(conn), Host: hostv1.NewHostClient(conn), Fail: s.failStream,
		Logger: s.deps.Logger, Closing: s.closing,
	}
	handlers := rest.Handlers{
		Events:   streams,
		Watch:    http.HandlerFunc(streams.ServeWatch),
		OpenAPI:  openapi.Handler(s.cfg.BasePath),
		AsyncAPI: asyncapi.Handler(s.cfg.BasePath),
		Assets:   &rest.Assets{Acceptor: s.deps.Acceptor},
	}
	if s.cfg.TestSeams {
		handlers.Seams = s.seams()
	}
	d := rest.Deps{
		Conn: conn,
		Keys: s.keys,
		Gate: s.gate,

		Rates:      s.rates,
		CheckToken: s.engine.CheckToken,
		Handlers:   handlers,
		Clean:      s.answers.RedactError,
		Ready:      s.deps.Ready,
		Warnings:   s.deps.Warnings,
		Clock:      s.deps.Clock,
		Logger:     s.deps.Logger,
	}
	api, err := rest.New(ctx, s.cfg.REST, d)
	if err != nil {
		return nil, err
	}
	site := &rest.Site{Base: s.cfg.BasePath, API: api, Fail: func(w http.ResponseWriter, r *http.Request, err error) {
		rest.WriteError(w, s.deps.Logger, s.answers.RedactError(r.Context(), err))
	}}
	if s.sessions != nil {
		pages, err := console.New(s.cfg.BasePath)
		if err != nil {
			return nil, err
		}
		site.Admit, site.Console = s.sessions.Admit, s.sessions.Handler(pages, console.Secure, site.Fail)
	}
	return s.trace.Handler(s.cfg.REST.Patience.Handler(site)), nil
}

// seams makes the handler of the test seams.
func (s *Service) seams() http.Handler {
	return &seam.Handler{
		Dispatcher: s.deps.Dispatcher,
		EventLog:   s.deps.EventLog,
		Acceptor:   s.deps.Acceptor,
		Bundles:    redaction.BundleExporter{EventLog: s.deps.EventLog, Redactor: s.deps.Redactor},
		Logger:     s.deps.Logger,
		Clock:      s.deps.Clock,
		Clean:      s.answers.RedactError,
		Redact:     s.answers.RedactDocument,
	}
}

// Drain ends all event streams so that the HTTP server can stop. Clients resume on another
// replica. Call it once.
func (s *Service) Drain() { close(s.closing) }
