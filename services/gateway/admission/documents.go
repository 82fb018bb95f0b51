package admission

import (
	"context"

	"google.golang.org/grpc"

	"waybill.dev/waybill/internal/share"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/gateway/auth"
)

// documentsEach is how many documents are made for one tenant at a time. A document of a large run
// needs several times its size, so more of them need memory, and are no faster.
const documentsEach = 8

// documents are the methods whose answers may be large and that do not wait for events.
var documents = map[string]bool{
	openwopv1.Engine_GetRun_FullMethodName:      true,
	openwopv1.Engine_GetWorkflow_FullMethodName: true,
	hostv1.Host_GetRunView_FullMethodName:       true,
	hostv1.Host_GetDebugBundle_FullMethodName:   true,
	hostv1.Host_DiffRuns_FullMethodName:         true,
	hostv1.Host_ListRuns_FullMethodName:         true,
	hostv1.Host_ListAnnotations_FullMethodName:  true,
	hostv1.Host_ListAuditEntries_FullMethodName: true,
}

// Documents returns an interceptor behind authentication: large reads of one tenant take turns.
func Documents() grpc.UnaryServerInterceptor {
	turns := share.NewTurns(documentsEach)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		p := auth.From(ctx)
		if p == nil || !documents[info.FullMethod] {
			return next(ctx, req)
		}
		give, err := turns.Take(ctx, p.Tenant)
		if err != nil {
			return nil, err
		}
		defer give()
		return next(ctx, req)
	}
}
