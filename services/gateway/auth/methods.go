package auth

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
)

// rule is what a method asks of its caller.
type rule struct {
	public bool
	scope  Scope
}

// methods is the table of all public methods (OpenWOP host contract §9.4).
var methods = map[string]rule{
	openwopv1.Engine_GetCapabilities_FullMethodName: {public: true},
	openwopv1.Engine_GetWorkflow_FullMethodName:     {scope: ManifestRead},
	openwopv1.Engine_CreateRun_FullMethodName:       {scope: RunsCreate},
	openwopv1.Engine_GetRun_FullMethodName:          {scope: RunsRead},
	openwopv1.Engine_CancelRun_FullMethodName:       {scope: RunsCancel},
	openwopv1.Engine_BulkCancelRuns_FullMethodName:  {scope: RunsCancel},
	openwopv1.Engine_StreamRunEvents_FullMethodName: {scope: RunsRead},
	hostv1.Host_PollRunEvents_FullMethodName:        {scope: RunsRead},
	hostv1.Host_GetDebugBundle_FullMethodName:       {scope: RunsRead},
	hostv1.Host_ListRuns_FullMethodName:             {scope: RunsRead},
	hostv1.Host_ListWorkflows_FullMethodName:        {scope: ManifestRead},
	hostv1.Host_PutWorkflow_FullMethodName:          {scope: WorkflowsWrite},
	hostv1.Host_GetEnvelopeSchema_FullMethodName:    {public: true},
	// Tooling of gRPC itself; health tells nothing of a tenant.
	"/grpc.health.v1.Health/Check": {public: true},
	"/grpc.health.v1.Health/Watch": {public: true},
}

// ScopeOf is the scope a method needs; "" when it is public.
func ScopeOf(method string) (scope Scope, known bool) {
	r, ok := methods[method]
	return r.scope, ok
}

// Check decides whether the holder of a credential may call a method. The
// principal is nil for public methods.
func (k *Keys) Check(method, header string) (*Principal, error) {
	r, ok := methods[method]
	if r.public {
		return nil, nil //nolint:nilnil // a public method has no principal
	}
	p, err := k.Authenticate(header)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fault.New(fault.NotFound, "this host does not serve the method")
	}
	if !p.May(r.scope) {
		return nil, fault.New(fault.Forbidden, "the API key lacks the scope %s", r.scope).With("scopeRequired", string(r.scope))
	}
	return p, nil
}

// principalKey is the context key of the principal.
type principalKey struct{}

// WithPrincipal puts the principal into a context.
func WithPrincipal(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// From is the principal of a request that needed one; nil for a public method.
func From(ctx context.Context) *Principal {
	p, _ := ctx.Value(principalKey{}).(*Principal)
	return p
}

// credential is the authorization metadata of a call.
func credential(ctx context.Context) string {
	if v := metadata.ValueFromIncomingContext(ctx, "authorization"); len(v) > 0 {
		return v[0]
	}
	return ""
}

// Unary guards unary methods.
func (k *Keys) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	p, err := k.Check(info.FullMethod, credential(ctx))
	if err != nil {
		return nil, err
	}
	return next(WithPrincipal(ctx, p), req)
}

// Stream guards streaming methods.
func (k *Keys) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	p, err := k.Check(info.FullMethod, credential(ss.Context()))
	if err != nil {
		return err
	}
	return next(srv, guarded{ss, WithPrincipal(ss.Context(), p)})
}

type guarded struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // how gRPC hands a context to a stream's handler
}

func (g guarded) Context() context.Context { return g.ctx }
