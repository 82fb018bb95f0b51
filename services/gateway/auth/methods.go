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

// rule is the authorization rule of a method.
type rule struct {
	public bool
	scope  Scope
	// also are further required scopes.
	also []Scope
}

// methods is the table of all public methods (OpenWOP host contract §9.4).
var methods = map[string]rule{
	openwopv1.Engine_GetCapabilities_FullMethodName:       {public: true},
	openwopv1.Engine_GetWorkflow_FullMethodName:           {scope: ManifestRead},
	openwopv1.Engine_CreateRun_FullMethodName:             {scope: RunsCreate},
	openwopv1.Engine_ForkRun_FullMethodName:               {scope: RunsCreate, also: []Scope{RunsRead}},
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
	hostv1.Host_CountRuns_FullMethodName:                  {scope: RunsRead},
	hostv1.Host_BulkDeleteRuns_FullMethodName:             {scope: RunsDelete},
	hostv1.Host_BulkRetryRuns_FullMethodName:              {scope: RunsCreate, also: []Scope{RunsRead}},
	hostv1.Host_BulkAnnotateRuns_FullMethodName:           {scope: RunsRead},
	hostv1.Host_WatchRuns_FullMethodName:                  {scope: RunsRead},
	hostv1.Host_ListInterrupts_FullMethodName:             {scope: ApprovalsRespond},
	hostv1.Host_CountInterrupts_FullMethodName:            {scope: ApprovalsRespond},
	hostv1.Host_AssignInterrupt_FullMethodName:            {scope: ApprovalsRespond},
	hostv1.Host_ReleaseInterrupt_FullMethodName:           {scope: ApprovalsRespond},
	hostv1.Host_ListSavedViews_FullMethodName:             {scope: RunsRead},
	hostv1.Host_PutSavedView_FullMethodName:               {scope: RunsRead},
	hostv1.Host_DeleteSavedView_FullMethodName:            {scope: RunsRead},
	hostv1.Host_ListModelCapabilities_FullMethodName:      {scope: ManifestRead},
	hostv1.Host_ListModelSubstitutions_FullMethodName:     {scope: RunsRead},
	hostv1.Host_ListWorkflows_FullMethodName:              {scope: ManifestRead},
	hostv1.Host_ListWorkflowStatistics_FullMethodName:     {scope: RunsRead},
	hostv1.Host_GetStatistics_FullMethodName:              {scope: RunsRead},
	hostv1.Host_ListTenantStatistics_FullMethodName:       {scope: RunsRead}, // TenantsRead shows the other tenants
	hostv1.Host_ListAnswers_FullMethodName:                {scope: RunsRead},
	hostv1.Host_PutWorkflow_FullMethodName:                {scope: WorkflowsWrite},
	hostv1.Host_ValidateWorkflow_FullMethodName:           {scope: ManifestRead},
	hostv1.Host_ListWorkflowVersions_FullMethodName:       {scope: ManifestRead},
	hostv1.Host_DiffWorkflow_FullMethodName:               {scope: ManifestRead},
	hostv1.Host_DeleteWorkflow_FullMethodName:             {scope: WorkflowsWrite},
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
	hostv1.Host_RedeliverWebhookEvent_FullMethodName:  {scope: WebhooksManage},

	hostv1.Host_ListQuarantinedRuns_FullMethodName: {scope: RunsRead},
	hostv1.Host_RetryQuarantinedRun_FullMethodName: {scope: RunsCancel},
	hostv1.Host_EndQuarantinedRun_FullMethodName:   {scope: RunsCancel},
	hostv1.Host_DeleteRun_FullMethodName:           {scope: RunsDelete},
	hostv1.Host_EraseRuns_FullMethodName:           {scope: RunsDelete},
	hostv1.Host_ArchiveRuns_FullMethodName:         {scope: RunsArchive},
	hostv1.Host_GetRunArchive_FullMethodName:       {scope: RunsRead},
	hostv1.Host_HoldRun_FullMethodName:             {scope: RunsHold},
	hostv1.Host_ReleaseRun_FullMethodName:          {scope: RunsHold},
	hostv1.Host_ListHolds_FullMethodName:           {scope: RunsRead},
	hostv1.Host_EraseTenant_FullMethodName:         {scope: TenantErase},
	hostv1.Host_GetRetention_FullMethodName:        {scope: RunsRead},
	hostv1.Host_GetSystem_FullMethodName:           {scope: SystemRead},
	hostv1.Host_GetRunOwner_FullMethodName:         {scope: RunsRead},
	hostv1.Host_GetRunView_FullMethodName:          {scope: RunsRead},
	hostv1.Host_GetNodeInput_FullMethodName:        {scope: RunsRead, also: []Scope{ManifestRead}},               // it has the node's config
	hostv1.Host_ForkNode_FullMethodName:            {scope: RunsCreate, also: []Scope{RunsRead, WorkflowsWrite}}, // it executes an edited definition
	hostv1.Host_ReadAnswer_FullMethodName:          {scope: RunsRead},
	// gRPC tooling. Health contains no tenant data.
	"/grpc.health.v1.Health/Check": {public: true},
	"/grpc.health.v1.Health/Watch": {public: true},
	// Served only if the operator enables it.
	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      {public: true},
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": {public: true},
}

// ScopesOf returns the scopes that a method requires, all of them; none if it is public.
func ScopesOf(method string) (scopes []Scope, known bool) {
	r, ok := methods[method]
	return r.scopes(), ok
}

func (r rule) scopes() []Scope {
	if r.scope == "" {
		return nil
	}
	return append([]Scope{r.scope}, r.also...)
}

// Check authorizes a call by its credential. The principal is nil for public methods.
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
			k.reportUse(p, scope, false)
			return nil, fault.New(fault.Forbidden, "the API key lacks the scope %s", scope).With("scopeRequired", string(scope))
		}
	}
	return p, nil
}

// principalKey is the context key of the principal.
type principalKey struct{}

// WithPrincipal returns a context with a principal.
func WithPrincipal(ctx context.Context, p *Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// From returns the principal of a request; nil for public methods.
func From(ctx context.Context) *Principal {
	p, _ := ctx.Value(principalKey{}).(*Principal)
	return p
}

// Credential returns the authorization metadata of a call; empty if there is not exactly one.
func Credential(ctx context.Context) string {
	if v := metadata.ValueFromIncomingContext(ctx, "authorization"); len(v) == 1 {
		return v[0]
	}
	return ""
}

// authorize checks a call and records the use of its key. REST calls Check before it
// forwards a request, so only this method counts uses.
func (k *Keys) authorize(ctx context.Context, method string) (*Principal, error) {
	p, err := k.Check(method, Credential(ctx))
	if err == nil && p != nil {
		k.reportUse(p, methods[method].scope, true)
	}
	return p, err
}

func (k *Keys) reportUse(p *Principal, s Scope, granted bool) {
	if k.Used != nil {
		k.Used(p, s, granted)
	}
}

// Unary authorizes unary calls.
func (k *Keys) Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	p, err := k.authorize(ctx, info.FullMethod)
	if err != nil {
		return nil, err
	}
	return next(WithPrincipal(ctx, p), req)
}

// Stream authorizes streams.
func (k *Keys) Stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	p, err := k.authorize(ss.Context(), info.FullMethod)
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
