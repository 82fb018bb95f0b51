package admission

import (
	"context"
	"runtime"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"waybill.dev/waybill/internal/share"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/gateway/auth"
)

// Large requests and answers need several times their size while they are worked on, so more of them
// at a time need memory, and are no faster.
const (
	// documentsEach is how many documents are made for one tenant at a time, for each processor.
	documentsEach = 2
	largeBody     = 64 << 10
)

// bodiesEach is how many large bodies of one tenant are worked on at a time: half of the processors
// remain for other tenants.
func bodiesEach() int64 { return int64(max(1, processors()/2)) }

// processors is the number of processors that the process may use. A host has more threads.
func processors() int { return min(runtime.GOMAXPROCS(0), runtime.NumCPU()) }

// documents are the methods whose answers may be large and that do not wait for events.
var documents = map[string]bool{
	openwopv1.Engine_GetRun_FullMethodName:      true,
	openwopv1.Engine_GetWorkflow_FullMethodName: true,
	hostv1.Host_GetRunView_FullMethodName:       true,
	hostv1.Host_GetNodeInput_FullMethodName:     true,
	hostv1.Host_GetDebugBundle_FullMethodName:   true,
	hostv1.Host_GetRunArchive_FullMethodName:    true,
	hostv1.Host_DiffRuns_FullMethodName:         true,
	hostv1.Host_DiffWorkflow_FullMethodName:     true,
	hostv1.Host_ListRuns_FullMethodName:         true,
	hostv1.Host_ListAnnotations_FullMethodName:  true,
	hostv1.Host_ListAuditEntries_FullMethodName: true,
}

// Documents returns an interceptor behind authentication: large requests of one tenant take turns,
// and so do large reads. Large requests of all tenants together get as many bytes a second as the
// process has for bodies: their copies stay in the memory of an embedded log for seconds.
func (g *Gate) Documents() grpc.UnaryServerInterceptor {
	reads, bodies := share.NewTurns(int64(documentsEach*processors())), share.NewTurns(bodiesEach())
	pace := rate.NewLimiter(rate.Inf, 0)
	if n := g.bytes.Limit(); n > 0 {
		pace = rate.NewLimiter(rate.Limit(n), int(n))
	}
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		p := auth.From(ctx)
		var turns *share.Turns
		paced := 0
		if m, ok := req.(proto.Message); documents[info.FullMethod] {
			turns = reads
		} else if size := proto.Size(m); ok && size > largeBody {
			turns, paced = bodies, size
		}
		if p == nil || turns == nil {
			return next(ctx, req)
		}
		give, err := turns.Take(ctx, p.Tenant)
		if err != nil {
			return nil, err
		}
		defer give()
		if paced == 0 {
			return next(ctx, req)
		}
		switch err := pace.WaitN(ctx, min(paced, pace.Burst())); {
		case err == nil:
			return next(ctx, req)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		default: // its turn comes after its deadline
			return nil, g.refuse(tooManyBytes)
		}
	}
}
