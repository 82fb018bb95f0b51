package rpc

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"waybill.dev/waybill/protocol/fault"
)

const (
	authorization = "authorization"
	bearer        = "Bearer "
)

// Guard admits only calls with the right token.
type Guard struct {
	digest [sha256.Size]byte
	open   []string
}

// BearerToken returns a guard for a token. The open methods need none.
func BearerToken(token string, open ...string) *Guard {
	return &Guard{digest: sha256.Sum256([]byte(token)), open: open}
}

// Unary guards calls.
func (g *Guard) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := g.check(ctx, info.FullMethod); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

// Stream guards streams.
func (g *Guard) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := g.check(ss.Context(), info.FullMethod); err != nil {
		return err
	}
	return next(srv, ss)
}

// check compares digests, so that the timing reveals nothing about the token.
func (g *Guard) check(ctx context.Context, method string) error {
	if slices.Contains(g.open, method) {
		return nil
	}
	for _, v := range metadata.ValueFromIncomingContext(ctx, authorization) {
		sent, ok := strings.CutPrefix(v, bearer)
		sum := sha256.Sum256([]byte(sent))
		if ok && subtle.ConstantTimeCompare(sum[:], g.digest[:]) == 1 {
			return nil
		}
	}
	return fault.New(fault.Unauthenticated, "send the token of this service as authorization: Bearer <token>")
}

// Bearer sends a token with each call.
type Bearer struct {
	Token string
	// Clear allows connections without TLS.
	Clear bool
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b Bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{authorization: bearer + b.Token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (b Bearer) RequireTransportSecurity() bool { return !b.Clear }
