// Package engine implements the public API as gRPC handlers: openwop.v1.Engine and this host's
// own waybill.host.v1.Host. A handler checks its request, calls the dispatcher, event log or
// acceptor, and converts the answer. REST calls the same handlers through a translation.
package engine

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"waybill.dev/waybill/internal/audit"
	"waybill.dev/waybill/internal/share"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/gateway/idempotency"
	"waybill.dev/waybill/services/gateway/redaction"
	"waybill.dev/waybill/services/gateway/webhook"
)

// Document is the discovery document.
type Document struct {
	JSON []byte
	// ETag is a strong validator over the bytes, in quotes.
	ETag string
}

// Discovery computes the discovery document.
type Discovery interface {
	Document(ctx context.Context) (Document, error)
	// Changed marks the document as outdated.
	Changed()
}

// Config is the configuration of the API.
type Config struct {
	// RunKey keys the derivation of run ids from idempotency keys. It has at least 32 bytes.
	RunKey []byte
	// BaseURL returns the public address without a trailing slash.
	BaseURL func() string
	// StalledAfter is the time without events after which a run counts as stalled; 0
	// disables it.
	StalledAfter time.Duration
	// MaxStreams limits open streams.
	MaxStreams int
	// Shares means that tenants share the streams; false means that there is one tenant.
	Shares bool
}

// Deps are the collaborators.
type Deps struct {
	Clients
	Redaction
	Audit
	Idempotency *idempotency.Keeper
	Discovery   Discovery
	// Tokens makes and reads tokens of interrupts.
	Tokens Tokens
	// TokenLifetime is how long tokens of interrupts are valid; 0 uses the default.
	TokenLifetime time.Duration
	// Annotations keeps annotations of runs; nil disables them.
	Annotations *AnnotationStore
	// Views keeps saved views, Assignees the assignees of questions; nil disables them.
	Views     *ViewStore
	Assignees *AssigneeStore
	// Webhooks is nil if this host has no webhooks.
	Webhooks *webhook.Service
	// Warnings returns the problems of the host; nil disables them.
	Warnings func() []string
	Clock    func() time.Time
}

// Clients call the other services.
type Clients struct {
	Dispatcher dispatcherv1.DispatcherClient
	EventLog   eventlogv1.EventLogClient
	Acceptor   acceptorv1.AcceptorClient
}

// Redaction removes secrets from what is stored or exported.
type Redaction struct {
	// Texts redacts texts that concern no run.
	Texts   redaction.Texts
	Bundles redaction.BundleExporter
}

// Audit writes and reads the audit log.
type Audit struct {
	// Recorder writes audit entries; nil disables it.
	Recorder audit.Recorder
	// AuditLog reads the audit log; nil disables it.
	AuditLog AuditLog
}

// Service implements the public API.
type Service struct {
	openwopv1.UnimplementedEngineServer
	hostv1.UnimplementedHostServer
	cfg     Config
	deps    Deps
	streams *share.Pool
}

// New makes the service.
func New(cfg Config, d Deps) *Service {
	if d.Recorder == nil {
		d.Recorder = audit.Off{}
	}
	return &Service{cfg: cfg, deps: d, streams: share.New(int64(cfg.MaxStreams), !cfg.Shares)}
}

// Register registers the handlers with a server.
func (s *Service) Register(r grpc.ServiceRegistrar) {
	openwopv1.RegisterEngineServer(r, s)
	hostv1.RegisterHostServer(r, s)
}

// Names of gRPC metadata. REST maps them to headers.
const (
	MetaIdempotencyKey = "idempotency-key"
	MetaDedup          = "x-dedup"
	MetaInterrupt      = "waybill-interrupt-id"
	MetaForceEngine    = "x-force-engine-version"
	MetaTraceparent    = "traceparent"
	// MetaTransport is set by the REST translation. Clients cannot set it.
	MetaTransport = "waybill-transport"
	// MetaStatus is the HTTP status of a success other than 200.
	MetaStatus = "waybill-http-status"
	MetaReplay = "openwop-idempotent-replay"
	MetaETag   = "etag"
	MetaHead   = "waybill-head" // sequence of the run's last event, of a poll
	MetaCache  = "cache-control"
	MetaCapTag = "capabilities-etag"
	// MetaStreaming means that the request of a stream was accepted.
	MetaStreaming = "waybill-streaming"
	// StreamOver is the value of MetaStreaming if the run has ended, and its subscriber has everything.
	StreamOver = "over"
)

// metaValue returns the first value of a request's metadata.
func metaValue(ctx context.Context, name string) (string, bool) {
	v := metadata.ValueFromIncomingContext(ctx, name)
	if len(v) == 0 {
		return "", false
	}
	return v[0], true
}

// setMeta sets response metadata. It fails only outside of a call.
func setMeta(ctx context.Context, kv ...string) { _ = grpc.SetHeader(ctx, metadata.Pairs(kv...)) }
