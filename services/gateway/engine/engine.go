// Package engine is the public API as gRPC: openwop.v1.Engine and what this host
// offers beside it. Handlers check a request, ask the service that knows, and
// put the answer into shape; REST is the same handlers behind a translation.
package engine

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"waybill.dev/waybill/internal/audit"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/gateway/idempotency"
	"waybill.dev/waybill/services/gateway/redaction"
	"waybill.dev/waybill/services/gateway/webhook"
)

// Document is the discovery document and the validators of it.
type Document struct {
	JSON []byte
	// ETag is a strong validator over the bytes, in quotes.
	ETag string
}

// Discovery computes the discovery document.
type Discovery interface {
	Document(ctx context.Context) (Document, error)
}

// Deps are the collaborators.
type Deps struct {
	Dispatcher  dispatcherv1.DispatcherClient
	EventLog    eventlogv1.EventLogClient
	Acceptor    acceptorv1.AcceptorClient
	Bundles     redaction.BundleExporter
	Idempotency *idempotency.Keeper
	Discovery   Discovery
	// Texts takes secrets out of texts of a tenant's.
	Texts redaction.Texts
	// Tokens are those of interrupts.
	Tokens Tokens
	// RunKey keys the derivation of run ids from idempotency keys; at least 32 bytes.
	RunKey []byte
	// StalledAfter is after how long without news a run counts as stalled; 0: never.
	StalledAfter time.Duration
	// BaseURL is the public address, without a slash at its end.
	BaseURL func() string
	Clock   func() time.Time
	// MaxStreams bounds the open streams.
	MaxStreams int
	// Recorder takes what callers do into the audit log; nil: nobody does.
	Recorder audit.Recorder
	// Annotations keeps what is said of runs; nil: nothing is.
	Annotations *AnnotationStore
	// Audit reads the audit log; nil: there is none.
	Audit AuditLog
	// Webhooks is nil where there are none.
	Webhooks *webhook.Service
}

// Service is the public API.
type Service struct {
	openwopv1.UnimplementedEngineServer
	hostv1.UnimplementedHostServer
	deps    Deps
	streams chan struct{}
}

// New makes the service.
func New(d Deps) *Service {
	if d.Recorder == nil {
		d.Recorder = audit.Off{}
	}
	return &Service{deps: d, streams: make(chan struct{}, d.MaxStreams)}
}

// Register puts the handlers on a server.
func (s *Service) Register(r grpc.ServiceRegistrar) {
	openwopv1.RegisterEngineServer(r, s)
	hostv1.RegisterHostServer(r, s)
}

// Names of metadata, which REST carries as headers.
const (
	MetaIdempotencyKey = "idempotency-key"
	MetaDedup          = "x-dedup"
	MetaForceEngine    = "x-force-engine-version"
	MetaTraceparent    = "traceparent"
	// MetaTransport is set by the REST side; clients cannot set it.
	MetaTransport = "waybill-transport"
	// MetaStatus carries an HTTP status other than 200 to the REST side.
	MetaStatus = "waybill-http-status"
	MetaReplay = "openwop-idempotent-replay"
	MetaETag   = "etag"
	MetaCache  = "cache-control"
	MetaCapTag = "capabilities-etag"
	// MetaStreaming tells that a stream's request was accepted.
	MetaStreaming = "waybill-streaming"
)

// meta is the first value of a request's metadata.
func meta(ctx context.Context, name string) (string, bool) {
	v := metadata.ValueFromIncomingContext(ctx, name)
	if len(v) == 0 {
		return "", false
	}
	return v[0], true
}

// tell sets response metadata. It fails only outside of a call.
func tell(ctx context.Context, kv ...string) { _ = grpc.SetHeader(ctx, metadata.Pairs(kv...)) }
