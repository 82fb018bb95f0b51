package rpc

import (
	"context"

	"google.golang.org/grpc/metadata"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
)

// Traceparent returns the W3C trace context of a call; empty if it has none or it is malformed.
func Traceparent(ctx context.Context) string {
	v := metadata.ValueFromIncomingContext(ctx, frame.HeaderTrace)
	if len(v) == 0 || !wire.ValidTraceparent(v[0]) {
		return ""
	}
	return v[0]
}
