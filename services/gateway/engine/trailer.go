package engine

import (
	"context"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// MetaRetryAfter is the metadata name of Retry-After, in seconds.
const MetaRetryAfter = "retry-after"

// Trailers is an interceptor that sets the metadata that REST sends as headers: the caller's
// traceparent, and Retry-After (OpenWOP host contract §9.4).
func Trailers(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	res, err := next(ctx, req)
	_ = grpc.SetTrailer(ctx, trailer(ctx, err)) // it fails only outside of a call
	return res, err
}

// StreamTrailers is Trailers for streams.
func StreamTrailers(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	err := next(srv, ss)
	ss.SetTrailer(trailer(ss.Context(), err))
	return err
}

func trailer(ctx context.Context, err error) metadata.MD {
	md := metadata.MD{}
	if trace := traceparent(ctx); trace != "" {
		md.Set(MetaTraceparent, trace)
	}
	if e, ok := fault.As(err); ok && e.RetryAfter > 0 {
		md.Set(MetaRetryAfter, strconv.Itoa(rpc.RetryAfterSeconds(e.RetryAfter)))
	}
	return md
}

// traceparent returns the caller's traceparent; empty if it is missing or malformed.
func traceparent(ctx context.Context) string {
	trace, _ := metaValue(ctx, MetaTraceparent)
	if !wire.ValidTraceparent(trace) {
		return ""
	}
	return trace
}
