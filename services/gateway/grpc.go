package gateway

import (
	"context"
	"time"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/tap"

	"waybill.dev/waybill/internal/rpc"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/admission"
	"waybill.dev/waybill/services/gateway/engine"
)

// Limits of a connection to the public gRPC server. Its callers may be strangers, unlike
// those of the other services.
const (
	// maxHeaders limits the metadata of one call, like the headers of a REST request.
	maxHeaders = 64 << 10
	// messageMargin is what a message may have in addition to the bytes of a REST body.
	messageMargin = 64 << 10
	// Windows limit the bytes that a connection sends before they are read.
	streamWindow     = 256 << 10
	connectionWindow = 1 << 20
	// handshakeTimeout limits a new connection's TLS and HTTP/2 handshakes.
	handshakeTimeout = 10 * time.Second
	// A connection without streams is closed after idleTimeout, and one that answers no ping
	// after pingEvery plus pingTimeout. Callers may ping every minPing.
	idleTimeout = 5 * time.Minute
	pingEvery   = 30 * time.Second
	pingTimeout = 20 * time.Second
	minPing     = 10 * time.Second
	// handlerTimeout is longer than a handler of a unary call takes.
	handlerTimeout = 35 * time.Second
)

// Server makes the public gRPC server.
func (s *Service) Server(opts ...grpc.ServerOption) *grpc.Server {
	unary := append([]grpc.UnaryServerInterceptor{s.trace.Unary, engine.Trailers, s.gate.Unary, s.rates.Unary(s.gate)}, s.unary()...)
	stream := append([]grpc.StreamServerInterceptor{s.trace.Stream, engine.StreamTrailers, s.rates.Stream(s.gate)}, s.stream()...)
	limits := []grpc.ServerOption{
		grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxRecvMsgSize(int(s.cfg.REST.MaxBodyBytes) + messageMargin),
		grpc.StaticStreamWindowSize(streamWindow),
		grpc.StaticConnWindowSize(connectionWindow),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTimeout, Time: pingEvery, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
	}
	if s.cfg.GRPCStreams > 0 {
		limits = append(limits, grpc.MaxConcurrentStreams(s.cfg.GRPCStreams))
	}
	srv := rpc.NewPublicServer(s.deps.Logger, s.admitCall, unary, stream, append(limits, opts...)...)
	s.register(srv)
	if s.cfg.Reflection {
		reflection.Register(srv)
	}
	return srv
}

// admitCall admits a call before its message is read, which may never arrive.
func (s *Service) admitCall(ctx context.Context, info *tap.Info) (context.Context, error) {
	credential := ""
	if v := info.Header.Get("authorization"); len(v) > 0 {
		credential = v[0]
	}
	leave, err := s.gate.EnterCall(s.gate.Identify(credential, admission.PeerAddress(ctx)))
	if e, ok := fault.As(err); ok {
		return ctx, rpc.ToStatus(e, false)
	}
	if total := s.cfg.REST.Patience.Total; total > 0 && !streaming[info.FullMethodName] {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, total+handlerTimeout)
		context.AfterFunc(ctx, cancel)
	}
	context.AfterFunc(ctx, leave)
	return ctx, nil
}

// streaming are the methods that have no time limit.
var streaming = streamsOf(openwopv1.Engine_ServiceDesc, hostv1.Host_ServiceDesc, healthv1.Health_ServiceDesc)

func streamsOf(services ...grpc.ServiceDesc) map[string]bool {
	out := map[string]bool{}
	for _, s := range services {
		for _, m := range s.Streams {
			out["/"+s.ServiceName+"/"+m.StreamName] = true
		}
	}
	return out
}

// SetServing sets the status of the gRPC health service.
func (s *Service) SetServing(ok bool) {
	status := healthv1.HealthCheckResponse_SERVING
	if !ok {
		status = healthv1.HealthCheckResponse_NOT_SERVING
	}
	for _, name := range []string{"", openwopv1.Engine_ServiceDesc.ServiceName, hostv1.Host_ServiceDesc.ServiceName} {
		s.health.SetServingStatus(name, status)
	}
}

// Local makes the same server for the REST side, within the process. It has no trailers and
// no admission: REST sets headers itself and has already admitted the request.
func (s *Service) Local() *rpc.Local {
	srv := rpc.NewLocal(s.deps.Logger, s.unary(), s.stream())
	s.register(srv)
	return srv
}

func (s *Service) unary() []grpc.UnaryServerInterceptor {
	return []grpc.UnaryServerInterceptor{s.calls.Unary, s.keys.Unary, s.documents, engine.CheckMeta, engine.SetStatus, s.engine.Once, s.answers.Unary}
}

func (s *Service) stream() []grpc.StreamServerInterceptor {
	return []grpc.StreamServerInterceptor{s.calls.Stream, s.keys.Stream, s.answers.Stream}
}

func (s *Service) register(r grpc.ServiceRegistrar) {
	s.engine.Register(r)
	healthv1.RegisterHealthServer(r, s.health)
}
