package rest

import (
	"context"
	"log/slog"
	"net/http"
	"net/textproto"
	"strconv"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/engine"
)

// inbound maps request headers to metadata. The gateway passes Authorization itself.
var inbound = map[string]string{
	"Idempotency-Key":        engine.MetaIdempotencyKey,
	"X-Dedup":                engine.MetaDedup,
	"X-Force-Engine-Version": engine.MetaForceEngine,
	"Waybill-Interrupt-Id":   engine.MetaInterrupt,
	"Traceparent":            engine.MetaTraceparent,
}

// outbound maps metadata to response headers, in the protocol's spelling.
var outbound = map[string]string{
	engine.MetaETag:   etagHeader,
	engine.MetaCache:  "Cache-Control",
	engine.MetaCapTag: "Capabilities-Etag",
	engine.MetaReplay: "openwop-Idempotent-Replay",
}

// newTranslator is grpc-gateway with this API's JSON, headers and errors.
func newTranslator(ctx context.Context, conn grpc.ClientConnInterface, clean func(context.Context, error) error, log *slog.Logger) (*runtime.ServeMux, error) {
	mux := runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, codec{}),
		runtime.WithIncomingHeaderMatcher(func(h string) (string, bool) {
			name, ok := inbound[textproto.CanonicalMIMEHeaderKey(h)]
			return name, ok
		}),
		runtime.WithOutgoingHeaderMatcher(func(string) (string, bool) { return "", false }),
		runtime.WithOutgoingTrailerMatcher(func(string) (string, bool) { return "", false }),
		runtime.WithMetadata(func(context.Context, *http.Request) metadata.MD {
			return metadata.Pairs(engine.MetaTransport, "rest")
		}),
		runtime.WithForwardResponseOption(forward),
		runtime.WithErrorHandler(func(ctx context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, _ *http.Request, err error) {
			if md, ok := runtime.ServerMetadataFromContext(ctx); ok { // a replayed failure says so
				if v := md.HeaderMD.Get(engine.MetaReplay); len(v) > 0 {
					w.Header()[outbound[engine.MetaReplay]] = v[:1]
				}
			}
			WriteError(w, log, clean(ctx, err))
		}),
		runtime.WithRoutingErrorHandler(func(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, _ *http.Request, _ int) {
			WriteError(w, log, fault.New(fault.NotFound, "no resource at this path"))
		}),
		runtime.WithDisablePathLengthFallback(),
	)
	if err := openwopv1.RegisterEngineHandlerClient(ctx, mux, openwopv1.NewEngineClient(nodeIDs{conn})); err != nil {
		return nil, err
	}
	return mux, hostv1.RegisterHostHandlerClient(ctx, mux, hostv1.NewHostClient(conn))
}

// forward copies response metadata into headers and sets the status.
func forward(ctx context.Context, w http.ResponseWriter, _ proto.Message) error {
	md, ok := runtime.ServerMetadataFromContext(ctx)
	if !ok {
		return nil
	}
	for from, to := range outbound {
		if v := md.HeaderMD.Get(from); len(v) > 0 {
			w.Header()[to] = v[:1]
		}
	}
	if w.Header().Get("Cache-Control") == "" {
		w.Header().Set("Cache-Control", "no-store")
	}
	if v := md.HeaderMD.Get(engine.MetaStatus); len(v) > 0 {
		code, err := strconv.Atoi(v[0])
		if err != nil {
			return err
		}
		w.WriteHeader(code)
	}
	return nil
}
