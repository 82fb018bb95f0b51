package auth

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"waybill.dev/waybill/internal/rpc"
	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
)

// rule is what a method asks of its caller.
type rule struct {
	public bool
	scope  Scope
	// also is a second scope that is needed; empty: none.
	also Scope
}

// methods is the table of all public methods (OpenWOP host contract §9.4).
var methods = map[string]rule{
	openwopv1.Engine_GetCapabilities_FullMethodName:       {public: true},
	openwopv1.Engine_GetWorkflow_FullMethodName:           {scope: ManifestRead},
	openwopv1.Engine_CreateRun_FullMethodName:             {scope: RunsCreate},
	openwopv1.Engine_ForkRun_FullMethodName:               {scope: RunsCreate, also: RunsRead},
	openwopv1.Engine_GetRun_FullMethodName:                {scope: RunsRead},
	openwopv1.Engine_CancelRun_FullMethodName:             {scope: RunsCancel},
	openwopv1.Engine_BulkCancelRuns_FullMethodName:        {scope: RunsCancel},
	openwopv1.Engine_PauseRun_FullMethodName:              {scope: RunsCancel},
	openwopv1.Engine_ResumeRun_FullMethodName:             {scope: RunsCancel},
	openwopv1.Engine_StreamRunEvents_FullMethodName:       {scope: RunsRead},
	openwopv1.Engine_VerifyAuditLog_FullMethodName:        {scope: AuditRead},
	hostv1.Host_ListAuditEntries_FullMethodName:           {scope: AuditRead},
	hostv1.Host_PollRunEvents_FullMethodName:              {scope: RunsRead},
	hostv1.Host_GetDebugBundle_FullMethodName:             {scope: RunsRead},
	hostv1.Host_DiffRuns_FullMethodName:                   {scope: RunsRead},
	hostv1.Host_CreateAnnotation_FullMethodName:           {scope: RunsRead},
	hostv1.Host_ListAnnotations_FullMethodName:            {scope: RunsRead},
	hostv1.Host_ListRuns_FullMethodName:                   {scope: RunsRead},
	hostv1.Host_WatchRuns_FullMethodName:                  {scope: RunsRead},
	hostv1.Host_ListInterrupts_FullMethodName:             {scope: ApprovalsRespond},
	hostv1.Host_ListModelCapabilities_FullMethodName:      {scope: ManifestRead},
	hostv1.Host_ListModelSubstitutions_FullMethodName:     {scope: RunsRead},
	hostv1.Host_ListWorkflows_FullMethodName:              {scope: ManifestRead},
	hostv1.Host_PutWorkflow_FullMethodName:                {scope: WorkflowsWrite},
	hostv1.Host_GetEnvelopeSchema_FullMethodName:          {public: true},
	openwopv1.Engine_ResolveInterruptByRun_FullMethodName: {scope: ApprovalsRespond},
	// The token is the authorisation (OpenWOP host contract §6.4).
	openwopv1.Engine_ResolveInterruptByToken_FullMethodName: {public: true},
	openwopv1.Engine_InspectInterruptByToken_FullMethodName: {public: true},

	openwopv1.Engine_RegisterWebhook_FullMethodName:   {scope: WebhooksManage},
	openwopv1.Engine_UnregisterWebhook_FullMethodName: {scope: WebhooksManage},
	hostv1.Host_ListWebhooks_FullMethodName:           {scope: WebhooksManage},
	hostv1.Host_RotateWebhookSecret_FullMethodName:    {scope: WebhooksManage},
	hostv1.Host_ListWebhookDeliveries_FullMethodName:  {scope: WebhooksManage},

	hostv1.Host_ListQuarantinedRuns_FullMethodName: {scope: RunsRead},
	hostv1.Host_RetryQuarantinedRun_FullMethodName: {scope: RunsCancel},
	hostv1.Host_EndQuarantinedRun_FullMethodName:   {scope: RunsCancel},
	hostv1.Host_GetRunOwner_FullMethodName:         {scope: RunsRead},
	// Tooling of gRPC itself; health tells nothing of a tenant.
	"/grpc.health.v1.Health/Check": {public: true},
	"/grpc.health.v1.Health/Watch": {public: true},
	// Only served where the operator wants it.
	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      {public: true},
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": {public: true},
}

// ScopesOf are the scopes a method needs, all of them; none when it is public.
func ScopesOf(method string) (scopes []Scope, known bool) {
	r, ok := methods[method]
	return r.scopes(), ok
}

func (r rule) scopes() []Scope {
	switch {
	case r.scope == "":
		return nil
	case r.also == "":
		return []Scope{r.scope}
	default:
		return []Scope{r.scope, r.also}
	}
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
		return nil, rpc.Unserved()
	}
	for _, scope := range r.scopes() {
		if !p.May(scope) {
			k.used(p, scope, false)
			return nil, fault.New(fault.Forbidden, "the API key lacks the scope %s", scope).With("scopeRequired", string(scope))
		}
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

// Credential is the authorization metadata of a call.
func Credential(ctx context.Context) string {
	if v := metadata.ValueFromIncomingContext(ctx, "authorization"); len(v) > 0 {
		return v[0]
	}
	return ""
}

// enter lets a call in. REST checks a request before it becomes a call, so that only
// here each is counted once.
func (k *Keys) enter(ctx context.Context, method string) (*Principal, error) {
	p, err := k.Check(method, Credential(ctx))
	if err == nil && p != nil {
		k.used(p, methods[method].scope, true)
	}
	return p, err
}

func (k *Keys) used(p *Principal, s Scope, granted bool) {
	if k.Used != nil {
		k.Used(p, s, granted)
	}
}

// Unary guards unary methods.
func (k *Keys) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	p, err := k.enter(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	return next(WithPrincipal(ctx, p), req)
}

// Stream guards streaming methods.
func (k *Keys) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	p, err := k.enter(ss.Context(), info.FullMethod)
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
