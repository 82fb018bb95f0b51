package rpc

import (
	"context"

	"google.golang.org/grpc/metadata"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
)

// Traceparent is the W3C trace context that a call came with; empty if it has
// none that is well-formed.
func Traceparent(ctx context.Context) string {
	v := metadata.ValueFromIncomingContext(ctx, frame.HeaderTrace)
	if len(v) == 0 || !wire.ValidTraceparent(v[0]) {
		return ""
	}
	return v[0]
}
