package peer

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc"

	"waybill.dev/waybill/protocol/fault"
)

// either calls healthy replicas. Without one, it sends reads to a replica that can read, which needs
// no other service.
type either struct {
	grpc.ClientConnInterface
	reads   grpc.ClientConnInterface
	methods []string
}

// Invoke makes a call.
func (e either) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	err := e.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
	if !errors.Is(err, fault.New(fault.ServiceUnavailable, "")) || !slices.Contains(e.methods, method) {
		return err
	}
	return e.reads.Invoke(ctx, method, args, reply, opts...)
}
