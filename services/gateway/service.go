// Package gateway is the only public door: REST and gRPC, credentials, discovery.
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
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"waybill.dev/waybill/console"
	"waybill.dev/waybill/internal/audit"
	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/notify"
	"waybill.dev/waybill/internal/obs/tracing"
	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/internal/token"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/services/gateway/admission"
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

// Config is what an operator sets.
type Config struct {
	Keys []auth.Spec
	REST rest.Config
	// Admission bounds what is taken at a time, and how fast runs are.
	Admission admission.Config
	// MaxStreams bounds the open event streams.
	MaxStreams int
	TestSeams  bool
	// Reflection lets gRPC clients ask what is served.
	Reflection bool
	// BaseURL and GRPCEndpoint are the public addresses, known once they listen.
	BaseURL      func() string
	GRPCEndpoint func() string
	// RunKey keys the derivation of run ids; secret, and the same for all replicas.
	RunKey []byte
	// InterruptKeys sign the tokens of interrupts; the same for all replicas.
	InterruptKeys token.Keys
	// BasePath is the path below which the REST API and the console are: empty, or one
	// like /a/b. BaseURL has it at its end.
	BasePath string
	// StalledAfter is after how long without news a run counts as stalled; 0: never.
	StalledAfter time.Duration
	// Console describes the web console; nil: it is not served. What the gateway knows
	// itself is filled in.
	Console *session.Config
}

// basePath is what a base path may look like: it stands in HTML, in links and in cookies.
var basePath = regexp.MustCompile(`^(/[A-Za-z0-9][A-Za-z0-9._~-]*)*$`)

// minRunKey is the least length of the derivation key, in bytes.
const minRunKey = 32

// Validate returns all that is wrong, joined.
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
		errs = append(errs, fmt.Errorf("gateway.basePath: %q: want one like /a/b, without a slash at its end", c.BasePath))
	}
	return errors.Join(errs...)
}

// Deps are the collaborators; the caller owns and closes them.
type Deps struct {
	Dispatcher dispatcherv1.DispatcherClient
	EventLog   eventlogv1.EventLogClient
	Acceptor   acceptorv1.AcceptorClient
	// Redactor takes secrets out of errors and debug bundles.
	Redactor redactorv1.RedactorClient
	// Annotations keeps what is said of runs, and Notices tells of it live; nil: runs
	// are not annotated.
	Annotations kv.Store
	Notices     *notify.Hub
	// Audit is the audit log; nil: none is kept. AuditKeys remembers which keys it
	// tells of.
	Audit     *audit.Log
	AuditKeys kv.Store
	// Records keeps idempotency records for a day.
	Records kv.Store
	// Webhooks delivers events to servers outside; nil: nothing does.
	Webhooks *webhook.Service
	// Spans takes those of the calls that are answered; nil: nobody does.
	Spans *tracing.Exporter
	// Ready says whether the host can serve; nil when it can.
	Ready  func() error
	Clock  func() time.Time
	Logger *slog.Logger
}

// Service is the gateway.
type Service struct {
	cfg     Config
	answers *redaction.AnswerRedactor
	deps    Deps
	keys    *auth.Keys
	gate    *admission.Gate
	engine  *engine.Service
	closing chan struct{}
	calls   *tracing.Calls
	usage   *audit.Usage // nil: no audit log is kept
	// health is what gRPC clients are told, and balancers.
	health *health.Server
	// sessions are those of the console; nil: it is not served.
	sessions *session.Keeper
}

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
	sessions, err := cfg.sessions(keys, d.Clock)
	if err != nil {
		return nil, err
	}
	known := discovery.Config{MaxBodyBytes: cfg.REST.MaxBodyBytes, GRPCEndpoint: cfg.GRPCEndpoint, TestSeams: cfg.TestSeams, Webhooks: d.Webhooks != nil}
	gate := admission.NewGate(cfg.Admission, d.Clock, keys.Tenant)
	public := engine.Deps{
		Dispatcher: gate.ObserveStarts(d.Dispatcher), EventLog: d.EventLog, Acceptor: d.Acceptor, Tokens: tokens,
		Bundles:     redaction.BundleExporter{EventLog: d.EventLog, Redactor: d.Redactor},
		Idempotency: idempotency.New(d.Records, d.Clock), RunKey: cfg.RunKey, BaseURL: cfg.BaseURL, Clock: d.Clock, StalledAfter: cfg.StalledAfter,
		MaxStreams: cfg.MaxStreams, Webhooks: d.Webhooks, Texts: redaction.TenantTexts(d.Redactor),
	}
	var usage *audit.Usage
	if d.Audit != nil {
		profile := d.Audit.Profile()
		known.Audit, public.Audit, public.Recorder = &profile, d.Audit, d.Audit
		usage = audit.NewUsage(d.Audit.Once(), d.Clock, d.Logger)
		keys.Used = func(p *auth.Principal, s auth.Scope, granted bool) { usage.Note(p.Tenant, p.KeyID, string(s), granted) }
	}
	if d.Annotations != nil {
		known.Annotations = true
		public.Annotations = &engine.AnnotationStore{Store: d.Annotations, Hub: d.Notices, Clock: d.Clock, Redact: redaction.RunTexts(d.Dispatcher)}
	}
	public.Discovery = discovery.New(known, d.Dispatcher, d.Acceptor, d.Clock)
	svc := &Service{
		answers: &redaction.AnswerRedactor{Redactor: d.Redactor},
		cfg:     cfg, deps: d, keys: keys, closing: make(chan struct{}), gate: gate,
		calls:  &tracing.Calls{Exporter: d.Spans, Roots: true},
		engine: engine.New(public), usage: usage, sessions: sessions, health: health.NewServer(),
	}
	svc.SetServing(true)
	return svc, nil
}

// sessions makes the keeper of the console's sessions; nil: there is no console.
func (c Config) sessions(keys *auth.Keys, clock func() time.Time) (*session.Keeper, error) {
	if c.Console == nil {
		return nil, nil //nolint:nilnil // no console, no sessions
	}
	own := *c.Console
	own.Keys, own.Base, own.MaxBodyBytes, own.StalledAfter = c.InterruptKeys, c.BasePath, c.REST.MaxBodyBytes, c.StalledAfter
	return session.New(own, keys, clock)
}

// MintCode makes a code that signs in to the console once with a key; empty: there is no
// console.
func (s *Service) MintCode(key string) string {
	if s.sessions == nil {
		return ""
	}
	return s.sessions.Mint(key)
}

// Server makes the public gRPC server.
func (s *Service) Server(opts ...grpc.ServerOption) *grpc.Server {
	unary := append([]grpc.UnaryServerInterceptor{engine.Trailers, s.gate.Unary}, s.unary()...)
	stream := append([]grpc.StreamServerInterceptor{engine.StreamTrailers}, s.stream()...)
	srv := rpc.NewServer(s.deps.Logger, unary, stream, opts...)
	s.register(srv)
	if s.cfg.Reflection {
		reflection.Register(srv)
	}
	return srv
}

// Collectors are the service's metrics.
func (s *Service) Collectors() []prometheus.Collector { return s.gate.Collectors() }

// SetServing tells by gRPC's health service whether the host can serve.
func (s *Service) SetServing(ok bool) {
	status := healthv1.HealthCheckResponse_SERVING
	if !ok {
		status = healthv1.HealthCheckResponse_NOT_SERVING
	}
	for _, name := range []string{"", openwopv1.Engine_ServiceDesc.ServiceName, hostv1.Host_ServiceDesc.ServiceName} {
		s.health.SetServingStatus(name, status)
	}
}

// Local makes the same server for the REST side, within the process. What gRPC
// clients find in trailers, REST puts into headers itself, and what it hands over it has let in.
func (s *Service) Local() *rpc.Local {
	srv := rpc.NewLocal(s.deps.Logger, s.unary(), s.stream())
	s.register(srv)
	return srv
}

func (s *Service) unary() []grpc.UnaryServerInterceptor {
	return []grpc.UnaryServerInterceptor{s.calls.Unary, s.keys.Unary, engine.SetStatus, s.engine.Once, s.answers.Unary}
}

func (s *Service) stream() []grpc.StreamServerInterceptor {
	return []grpc.StreamServerInterceptor{s.calls.Stream, s.keys.Stream, s.answers.Stream}
}

func (s *Service) register(r grpc.ServiceRegistrar) {
	s.engine.Register(r)
	healthv1.RegisterHealthServer(r, s.health)
}

// fail answers a stream that did not begin.
func (s *Service) fail(w http.ResponseWriter, log *slog.Logger, err error) {
	rest.WriteError(w, log, s.answers.RedactError(context.Background(), err))
}

// Handler makes the HTTP API over a connection to the public API's server.
func (s *Service) Handler(ctx context.Context, conn grpc.ClientConnInterface) (http.Handler, error) {
	description, err := openapi.Handler(s.cfg.BasePath)
	if err != nil {
		return nil, err
	}
	streams := &rest.EventStreams{
		Engine: openwopv1.NewEngineClient(conn), Host: hostv1.NewHostClient(conn), Fail: s.fail,
		Logger: s.deps.Logger, Closing: s.closing,
	}
	d := rest.Deps{
		Conn: conn, Keys: s.keys, Gate: s.gate, OpenAPI: description, Ready: s.deps.Ready, Clock: s.deps.Clock, Logger: s.deps.Logger,
		Events: streams, Watch: http.HandlerFunc(streams.ServeWatch),
	}
	d.Clean = s.answers.RedactError
	d.Assets = &rest.Assets{Acceptor: s.deps.Acceptor}
	if s.cfg.TestSeams {
		d.Seams = &seam.Handler{
			Dispatcher: s.deps.Dispatcher, EventLog: s.deps.EventLog, Acceptor: s.deps.Acceptor, Logger: s.deps.Logger, Clock: s.deps.Clock,
			Clean: s.answers.RedactError, Redact: s.answers.RedactDocument, Bundles: redaction.BundleExporter{EventLog: s.deps.EventLog, Redactor: s.deps.Redactor},
		}
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
	return site, nil
}

// Drain ends all event streams, so that the HTTP server can stop; their readers
// resume elsewhere. Call it once.
func (s *Service) Drain() { close(s.closing) }
