package engine

import (
	"context"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/protocol/fault"
)

// MetaRetryAfter is the name of the wait that an error asks for, in seconds.
const MetaRetryAfter = "retry-after"

// Trailers ends each call of a gRPC client with the metadata that REST answers
// have as headers: the caller's traceparent, and the wait before a retry (OpenWOP
// host contract §9.4).
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

// traceparent is the caller's, or empty: a malformed one is ignored, not refused.
func traceparent(ctx context.Context) string {
	trace, _ := meta(ctx, MetaTraceparent)
	if !ValidTraceparent(trace) {
		return ""
	}
	return trace
}

// ValidTraceparent checks the W3C form: version-traceid-parentid-flags.
func ValidTraceparent(s string) bool {
	if len(s) != 55 || s[2] != '-' || s[35] != '-' || s[52] != '-' || s[:2] == "ff" {
		return false
	}
	zeroTrace, zeroSpan := true, true
	for i := range len(s) {
		c := s[i]
		if i == 2 || i == 35 || i == 52 {
			continue
		}
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
		if c != '0' && i > 2 && i < 35 {
			zeroTrace = false
		}
		if c != '0' && i > 35 && i < 52 {
			zeroSpan = false
		}
	}
	return !zeroTrace && !zeroSpan
}
