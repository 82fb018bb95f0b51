package fault

import (
	"maps"
	"slices"
)

// Row is what one code means on each transport.
type Row struct {
	// HTTP is the status; 0 for a code that only ever stands in a run or node error.
	HTTP int
	// GRPC is the canonical gRPC code as a number: this package imports no gRPC.
	GRPC int
	// Retryable says that the same request may succeed later, unchanged.
	Retryable bool
	// Meaning is one sentence for docs and `waybill explain`.
	Meaning string
}

// The canonical gRPC codes this table uses, by number.
const (
	grpcInvalidArgument    = 3
	grpcNotFound           = 5
	grpcAlreadyExists      = 6
	grpcPermissionDenied   = 7
	grpcResourceExhausted  = 8
	grpcFailedPrecondition = 9
	grpcAborted            = 10
	grpcUnimplemented      = 12
	grpcInternal           = 13
	grpcUnavailable        = 14
	grpcUnauthenticated    = 16
)

// table is the only place that maps a code to a status (OpenWOP host contract §9.2-§9.4).
var table = map[Code]Row{
	ValidationError:         {400, grpcInvalidArgument, false, "The request does not have the shape or the values it must have; details name the members."},
	UnsupportedStreamMode:   {400, grpcInvalidArgument, false, "streamMode names a mode this host does not serve, or combines values with another mode."},
	UnsupportedMockProvider: {400, grpcInvalidArgument, false, "configurable.mockProvider.id is not in the catalogue."},
	UnsupportedForceEngine:  {400, grpcInvalidArgument, false, "X-Force-Engine-Version lies outside the advertised range."},
	CapabilityRequired:      {400, grpcFailedPrecondition, false, "The workflow uses a node type whose capability this host does not offer."},
	ResidencyUnavailable:    {400, grpcInvalidArgument, false, "The asked data region is not offered."},
	WebhookURLRejected:      {400, grpcInvalidArgument, false, "The URL of a webhook is not one this host calls: want https and a public address."},
	InvalidArgument:         {400, grpcInvalidArgument, false, "A test seam was given a body it cannot use."},

	Unauthenticated: {401, grpcUnauthenticated, false, "No valid credential: send Authorization: Bearer <key>."},
	KeyExpired:      {401, grpcUnauthenticated, false, "The key has expired."},
	KeyRevoked:      {401, grpcUnauthenticated, false, "The key was revoked."},

	Forbidden:             {403, grpcPermissionDenied, false, "The credential lacks the scope in details.scopeRequired, or names another tenant."},
	RunForbidden:          {403, grpcPermissionDenied, false, "The run belongs to another workspace of the tenant."},
	MockProviderForbidden: {403, grpcPermissionDenied, false, "mockProvider needs a test key."},
	ForceEngineForbidden:  {403, grpcPermissionDenied, false, "X-Force-Engine-Version needs a test key."},
	CredentialForbidden:   {403, grpcFailedPrecondition, false, "The provider takes no credential of the caller's own."},
	ProviderPolicyDenied:  {403, grpcPermissionDenied, false, "The provider policy of the tenant forbids this call."},
	AuthElevationRequired: {403, grpcPermissionDenied, false, "The interrupt takes a credential with approvals:respond; its token is not enough."},

	NotFound:             {404, grpcNotFound, false, "Nothing is at this address."},
	RunNotFound:          {404, grpcNotFound, false, "No run of this id in your tenant."},
	WorkflowNotFound:     {404, grpcNotFound, false, "No workflow of this id in your tenant."},
	InterruptNotFound:    {404, grpcNotFound, false, "The node has no interrupt, or the token is none of this host."},
	MethodNotAllowed:     {405, grpcUnimplemented, false, "The address is known but not with this method; see the Allow header."},
	SubscriptionNotFound: {404, grpcNotFound, false, "No webhook of this id in your tenant."},

	RunAlreadyActive:         {409, grpcAlreadyExists, true, "X-Dedup: enforce, and a run of the scope is active; details name it."},
	IdempotencyKeyMismatch:   {409, grpcAborted, false, "The Idempotency-Key was used with another request."},
	IdempotencyInFlight:      {409, grpcAborted, true, "The first request with this Idempotency-Key is still running."},
	Conflict:                 {409, grpcAborted, false, "The resource is in a state that does not allow this."},
	RunTerminal:              {409, grpcFailedPrecondition, false, "The run has already ended."},
	UntrustedBlocksApproval:  {409, grpcFailedPrecondition, false, "Untrusted content never advances an approval."},
	EnvelopeCorrelationClash: {409, grpcAborted, false, "The correlationId was used in this run by an envelope of another type."},

	InterruptResolved: {409, grpcAborted, false, "The interrupt was resolved before."},
	InterruptExpired:  {410, grpcFailedPrecondition, false, "The time for an answer is over."},
	InterruptGone:     {410, grpcFailedPrecondition, false, "The run has ended, and its interrupts with it."},
	RunExpired:        {410, grpcFailedPrecondition, false, "What the run's log has kept does not reach back far enough; details say how far it does."},

	PayloadTooLarge: {413, grpcResourceExhausted, false, "The body is larger than limits.maxRequestBodyBytes."},

	CorrelationMismatch:        {422, grpcFailedPrecondition, false, "The event from outside is not the one that the run waits for."},
	ForkInvalidSeq:             {422, grpcFailedPrecondition, false, "fromSeq lies beyond what the run to fork has recorded."},
	InvalidEnvelopeShape:       {422, grpcFailedPrecondition, false, "The document is not an AI envelope."},
	UnknownEnvelopeKind:        {422, grpcFailedPrecondition, false, "The host does not advertise this envelope kind."},
	UnknownSchemaVersion:       {422, grpcFailedPrecondition, false, "The envelope's schemaVersion is not the advertised one."},
	EnvelopeInvalid:            {422, grpcFailedPrecondition, false, "The payload does not satisfy the schema of its kind."},
	EnvelopeContractViolation:  {422, grpcFailedPrecondition, false, "The node's contract does not accept this kind."},
	EnvelopeTruncationTerminal: {422, grpcFailedPrecondition, false, "The model was cut off on every attempt, also with a larger budget."},
	EnvelopeRefusal:            {422, grpcFailedPrecondition, false, "The model refused; never retried."},
	HostCapabilityMissing:      {422, grpcFailedPrecondition, false, "A pack, or a call of a node, needs a capability that this host does not offer."},

	ClientVersionUnsupported: {426, grpcFailedPrecondition, false, "The client is older than minClientVersion."},
	RateLimited:              {429, grpcResourceExhausted, true, "Too many requests; wait Retry-After seconds."},

	InternalError:         {500, grpcInternal, true, "Something failed inside; details.correlationId finds it in the logs."},
	CapabilityNotProvided: {501, grpcFailedPrecondition, false, "A capability the request or node needs is not provided by this host."},
	ServiceUnavailable:    {503, grpcUnavailable, true, "The host cannot take the request now; wait Retry-After seconds."},
	EngineVersionMismatch: {503, grpcUnavailable, true, "The run was written by a newer engine than this one."},

	UnsupportedNodeType:   {0, grpcFailedPrecondition, false, "No node of this typeId is registered."},
	CredentialRequired:    {0, grpcFailedPrecondition, false, "The node needs a credential that is not there; set the provider's key."},
	CredentialUnavailable: {0, grpcFailedPrecondition, false, "The host offers no secrets, the node needs one."},
	CredentialNotFound:    {0, grpcFailedPrecondition, false, "The named credential does not exist."},
	UnsupportedModality:   {0, grpcFailedPrecondition, false, "The provider does not take this kind of content."},
	RecursionLimit:        {0, grpcResourceExhausted, false, "The run executed more nodes than its limit allows, or runs are nested too deeply."},
	UnknownChildWorkflow:  {0, grpcFailedPrecondition, false, "A node names a workflow to run that is not there."},
	ChildFailed:           {0, grpcFailedPrecondition, false, "A run that a node started did not complete."},
	RunTimeout:            {0, grpcFailedPrecondition, false, "The run took longer than its limit allows."},
	ChannelAccessDenied:   {0, grpcPermissionDenied, false, "The channel's access does not let the node read or write it."},
	ChannelSchemaBreaking: {0, grpcFailedPrecondition, false, "The channel holds a write of an older schema that its current one no longer reads."},
	VersionOutOfRange:     {0, grpcFailedPrecondition, false, "The run has settled for a version of a change that this host's code no longer has."},
	ReplaySourceMissing:   {0, grpcFailedPrecondition, false, "A replay needs the recorded outcome of an effect, and the source recorded none."},
	LoopLimit:             {0, grpcResourceExhausted, false, "A loop would have gone on for more rounds than its limit allows."},
	NodeTimeout:           {0, grpcFailedPrecondition, true, "An attempt of a node took longer than its settings.timeoutMs."},
	CapBreached:           {0, grpcResourceExhausted, false, "An envelope limit of the host was reached."},
	ProviderUnavailable:   {0, grpcUnavailable, true, "The model's server could not be reached or failed."},
	ProviderQuota:         {0, grpcResourceExhausted, true, "The model's server refused for quota or rate."},
	ProviderNotSupported:  {0, grpcFailedPrecondition, false, "The host has no provider of this id."},
	ModelNotSupported:     {0, grpcFailedPrecondition, false, "The provider does not know this model."},
	SchemaNotAccepted:     {0, grpcFailedPrecondition, false, "The provider does not accept the response schema."},
	ContentTooLong:        {0, grpcFailedPrecondition, false, "The prompt, the answer, or what a node is given or makes, is larger than the limit."},
	ToolFailed:            {0, grpcFailedPrecondition, false, "A tool or an agent was asked, and says that it failed."},
	PeerInputRequired:     {0, grpcFailedPrecondition, false, "A tool or an agent asks for input that a workflow cannot give."},
	PromptVariable:        {422, grpcFailedPrecondition, false, "The prompt names a variable that has no value."},
	TemplateNotFound:      {404, grpcNotFound, false, "The host has no such prompt template, or not in this version."},
	InterruptRejected:     {0, grpcFailedPrecondition, false, "Somebody rejected what the run asked to have approved, or nobody approved it in time."},
	InterruptTimeout:      {0, grpcFailedPrecondition, false, "Nobody answered what the run asked in time."},
	ConformanceFailure:    {0, grpcFailedPrecondition, false, "core.fail did what it is for."},
}

// Lookup gives the row of a code. An unknown code counts as internal.
func Lookup(c Code) Row {
	if r, ok := table[c]; ok {
		return r
	}
	return table[InternalError]
}

// Known reports whether the table has the code.
func Known(c Code) bool { _, ok := table[c]; return ok }

// Codes lists every code, sorted.
func Codes() []Code { return slices.Sorted(maps.Keys(table)) }
