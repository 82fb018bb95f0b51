package fault

import (
	"maps"
	"slices"
)

// Row describes one code on each transport.
type Row struct {
	// HTTP is the status; 0 for a code that appears only in run and node errors.
	HTTP int
	// GRPC is the canonical gRPC code as a number: this package imports no gRPC.
	GRPC int
	// Retryable: the same request may succeed later, unchanged.
	Retryable bool
	// Owner is the party that can fix the error.
	Owner Owner
	// Meaning is one sentence for the docs, the console and `waybill explain`.
	Meaning string
	// Next is the owner's next step.
	Next string
}

// Owner is the party that acts on an error. A model acts when it is called again.
type Owner string

// The owners.
const (
	Model          Owner = "model"
	WorkflowAuthor Owner = "workflow author"
	Operator       Owner = "operator"
	Caller         Owner = "caller"
)

// The canonical gRPC codes this table uses, by number.
const (
	grpcInvalidArgument    = 3
	grpcNotFound           = 5
	grpcAlreadyExists      = 6
	grpcPermissionDenied   = 7
	grpcResourceExhausted  = 8
	grpcFailedPrecondition = 9
	grpcAborted            = 10
	grpcOutOfRange         = 11
	grpcUnimplemented      = 12
	grpcInternal           = 13
	grpcUnavailable        = 14
	grpcDataLoss           = 15
	grpcUnauthenticated    = 16
)

// table is the only place that maps a code to a status (OpenWOP host contract §9.2-§9.4).
var table = union(answers, outcomes)

func union(parts ...map[Code]Row) map[Code]Row {
	all := map[Code]Row{}
	for _, p := range parts {
		maps.Copy(all, p)
	}
	return all
}

// answers are the codes that reach a client as a response; they may also appear in a run's error.
var answers = map[Code]Row{
	ValidationError: {
		400, grpcInvalidArgument, false, Caller,
		"The request does not have the shape or the values it must have; details name the members.",
		"Correct the members that details name, and send the request again.",
	},
	UnsupportedStreamMode: {
		400, grpcInvalidArgument, false, Caller,
		"streamMode names a mode this host does not support, or combines values with another mode.",
		"Use values, updates, messages or debug, or a list of them without values.",
	},
	UnsupportedMockProvider: {
		400, grpcInvalidArgument, false, Caller,
		"configurable.mockProvider.id is not in the catalogue.",
		"Use a mock provider that the host's discovery document lists, or omit configurable.mockProvider.",
	},
	UnsupportedForceEngine: {
		400, grpcInvalidArgument, false, Caller,
		"X-Force-Engine-Version is outside the advertised range.",
		"Omit the header, or send a version within the advertised range.",
	},
	CapabilityRequired: {
		400, grpcFailedPrecondition, false, Operator,
		"The workflow uses a node type whose capability this host does not offer.",
		"Enable the capability that details name, or use a host that offers it. `waybill capabilities` lists what this host offers.",
	},
	ResidencyUnavailable: {
		400, grpcInvalidArgument, false, Caller,
		"The requested data region is not available.",
		"Use a region that the discovery document lists, or omit the region.",
	},
	WebhookURLRejected: {
		400, grpcInvalidArgument, false, Caller,
		"The webhook URL is not allowed: it needs https and a public address.",
		"Give an https URL whose host has a public address.",
	},
	InvalidArgument: {
		400, grpcInvalidArgument, false, Caller,
		"A test seam received an invalid body.",
		"Send the body that the test seam documents; details name the member.",
	},

	Unauthenticated: {
		401, grpcUnauthenticated, false, Caller,
		"No valid credential: send Authorization: Bearer <key>.",
		"Send a key of this host as Authorization: Bearer; with the command line, set WAYBILL_TOKEN or a context.",
	},
	KeyExpired: {
		401, grpcUnauthenticated, false, Caller,
		"The key has expired.",
		"Get a new key from the operator.",
	},
	KeyRevoked: {
		401, grpcUnauthenticated, false, Caller,
		"The key was revoked.",
		"Get a new key from the operator.",
	},

	Forbidden: {
		403, grpcPermissionDenied, false, Caller,
		"The credential lacks the scope in details.scopeRequired, or names another tenant; or a write of a console session lacks its header.",
		"Use a key with the scope that details.scopeRequired names, of the tenant that owns the resource.",
	},
	RunForbidden: {
		403, grpcPermissionDenied, false, Caller,
		"The run belongs to another workspace of the tenant.",
		"Use a key of the workspace that owns the run.",
	},
	MockProviderForbidden: {
		403, grpcPermissionDenied, false, Caller,
		"mockProvider needs a test key.",
		"Use a test key, or omit configurable.mockProvider.",
	},
	ForceEngineForbidden: {
		403, grpcPermissionDenied, false, Caller,
		"X-Force-Engine-Version needs a test key.",
		"Use a test key, or omit the header.",
	},
	CredentialForbidden: {
		403, grpcFailedPrecondition, false, Caller,
		"The provider does not accept the caller's own credential.",
		"Omit the credential to use the host's own, or use a provider that accepts one.",
	},
	ProviderPolicyDenied: {
		403, grpcPermissionDenied, false, Operator,
		"The provider policy of the tenant forbids this call.",
		"Allow the provider or model in the tenant's policy, or use an allowed one in the workflow.",
	},
	AuthElevationRequired: {
		403, grpcPermissionDenied, false, Caller,
		"The interrupt requires a credential with approvals:respond; its token is not sufficient.",
		"Answer with a key that has the scope approvals:respond.",
	},

	NotFound: {
		404, grpcNotFound, false, Caller,
		"The address does not exist.",
		"Check the address, and the host, base path and id in it.",
	},
	RunNotFound: {
		404, grpcNotFound, false, Caller,
		"Your tenant has no run with this id.",
		"Check the id and that the key belongs to the tenant of the run. `waybill run list` lists its runs.",
	},
	NotQuarantined: {
		404, grpcNotFound, false, Caller,
		"Your tenant has no quarantined run with this id.",
		"List the quarantined runs: `waybill run quarantine list`. End any other run with `waybill run cancel RUN`.",
	},
	WorkflowNotFound: {
		404, grpcNotFound, false, Caller,
		"Your tenant has no workflow with this id.",
		"Check the id with `waybill workflow list`. Register the workflow, or have the operator load it with --workflows.",
	},
	InterruptNotFound: {
		404, grpcNotFound, false, Caller,
		"The node has no interrupt, or the token is not valid on this host.",
		"List open interrupts with `waybill interrupt list`. Links to answer pages expire.",
	},
	MethodNotAllowed: {
		405, grpcUnimplemented, false, Caller,
		"The address does not support this method; see the Allow header.",
		"Use one of the methods of the Allow header.",
	},
	SubscriptionNotFound: {
		404, grpcNotFound, false, Caller,
		"Your tenant has no webhook with this id.",
		"List the tenant's webhooks and use one of their ids.",
	},

	RunAlreadyActive: {
		409, grpcAlreadyExists, true, Caller,
		"X-Dedup is enforce, and a run with the same scope is active; details name it.",
		"Follow the run that details name, or retry after it has ended.",
	},
	IdempotencyKeyMismatch: {
		409, grpcAborted, false, Caller,
		"The Idempotency-Key was used with another request.",
		"Use a new key for a new request; send the old request unchanged to get its answer again.",
	},
	IdempotencyInFlight: {
		409, grpcAborted, true, Caller,
		"The first request with this Idempotency-Key is still running.",
		"Wait for Retry-After, then send the same request with the same key again.",
	},
	Conflict: {
		409, grpcAborted, false, Caller,
		"The resource is in a state that does not allow this.",
		"Read the resource again and act on its current state.",
	},
	RunTerminal: {
		409, grpcFailedPrecondition, false, Caller,
		"The run has already ended.",
		"Fork the run, or start a new one.",
	},
	UntrustedBlocksApproval: {
		409, grpcFailedPrecondition, false, WorkflowAuthor,
		"Untrusted content never advances an approval.",
		"Have a person review the content and reject or refine it, or remove the untrusted source from the path to this approval.",
	},
	EnvelopeCorrelationClash: {
		409, grpcAborted, false, Model,
		"The correlationId was used in this run by an envelope of another type.",
		"Use a unique correlationId for each emission; reuse one only to repeat the same emission.",
	},

	InterruptResolved: {
		409, grpcAborted, false, Caller,
		"The interrupt was already resolved.",
		"No further answer is needed. The run shows the recorded one.",
	},
	InterruptExpired: {
		410, grpcFailedPrecondition, false, WorkflowAuthor,
		"The deadline for an answer has passed.",
		"Give the interrupt a longer timeoutMs, or fork the run from before the wait.",
	},
	InterruptGone: {
		410, grpcFailedPrecondition, false, Caller,
		"The run has ended, so its interrupts are closed.",
		"Check how the run ended; fork it to open the interrupt again.",
	},
	RunExpired: {
		410, grpcFailedPrecondition, false, Caller,
		"The requested events are no longer retained; details give the first retained sequence.",
		"Read from the sequence in details, or read the run's snapshot.",
	},

	PayloadTooLarge: {
		413, grpcResourceExhausted, false, Caller,
		"The body is larger than limits.maxRequestBodyBytes.",
		"Send less, or reference large content by URL. The operator sets --max-request-body-bytes.",
	},

	RangeNotSatisfiable: {
		416, grpcOutOfRange, false, Caller,
		"The Range header names no part of the asset.",
		"Send a range within details.sizeBytes, such as bytes=0-1023, or no Range header.",
	},

	CorrelationMismatch: {
		422, grpcFailedPrecondition, false, Caller,
		"The external event is not the one that the run waits for.",
		"Send the correlation id that the interrupt shows: `waybill interrupt show RUN NODE`.",
	},
	ForkInvalidSeq: {
		422, grpcFailedPrecondition, false, Caller,
		"fromSeq is beyond the last recorded event of the source run.",
		"Choose a recorded sequence; `waybill run events RUN` lists them.",
	},
	InvalidEnvelopeShape: {
		422, grpcFailedPrecondition, false, Model,
		"The document is not an AI envelope.",
		"Emit type, schemaVersion, envelopeId, correlationId and payload as the kind's schema shows; `waybill envelope validate` reports the problems.",
	},
	UnknownEnvelopeKind: {
		422, grpcFailedPrecondition, false, Model,
		"The host does not advertise this envelope kind.",
		"Emit a kind that the host advertises, or have the operator load it with --kinds or a pack.",
	},
	UnknownSchemaVersion: {
		422, grpcFailedPrecondition, false, Model,
		"The envelope's schemaVersion is not the advertised one.",
		"Emit the schemaVersion that the host advertises for the kind.",
	},
	EnvelopeInvalid: {
		422, grpcFailedPrecondition, false, Model,
		"The payload does not satisfy the schema of its kind.",
		"Correct the payload at the pointers in details. If models keep failing, simplify the schema.",
	},
	EnvelopeContractViolation: {
		422, grpcFailedPrecondition, false, WorkflowAuthor,
		"The node's contract does not accept this kind.",
		"Add the refused kind to the node's contract, or list the accepted kinds in the prompt.",
	},
	EnvelopeTruncationTerminal: {
		422, grpcFailedPrecondition, false, WorkflowAuthor,
		"The answer was truncated on every attempt, even with a larger budget.",
		"Raise the node's maxTokens, request a shorter answer, or use a model with a larger output limit.",
	},
	EnvelopeRefusal: {
		422, grpcFailedPrecondition, false, WorkflowAuthor,
		"The model refused the request. Refusals are not retried.",
		"Change the prompt or the input, or use another model; the same request will be refused again.",
	},
	HostCapabilityMissing: {
		422, grpcFailedPrecondition, false, Operator,
		"A pack or a node needs a capability that this host does not offer.",
		"Enable the capability that details name, or remove the pack.",
	},

	ClientVersionUnsupported: {
		426, grpcFailedPrecondition, false, Caller,
		"The client is older than minClientVersion.",
		"Update the client to the minClientVersion of the discovery document.",
	},
	RateLimited: {
		429, grpcResourceExhausted, true, Caller,
		"Too many requests; wait Retry-After seconds.",
		"Wait for Retry-After, and send fewer concurrent requests.",
	},

	LogDamaged: {
		500, grpcDataLoss, false, Operator,
		"The run's log does not match its checksums, so the run can be neither read nor continued.",
		"Restore the log from a backup; the run then continues by itself. `waybill run quarantine list` shows such runs, and the host's log names the frame.",
	},
	InternalError: {
		500, grpcInternal, true, Operator,
		"An internal error occurred; find it in the logs by details.correlationId.",
		"Search the host's logs for details.correlationId. A client may retry with the same key.",
	},
	CapabilityNotProvided: {
		501, grpcFailedPrecondition, false, Operator,
		"A capability the request or node needs is not provided by this host.",
		"Configure what the message names, such as a provider key or a capable model, or change the workflow.",
	},
	ServiceUnavailable: {
		503, grpcUnavailable, true, Operator,
		"The host cannot process the request now; wait Retry-After seconds.",
		"Check /readyz and `waybill doctor`. Clients retry after Retry-After.",
	},
	EngineVersionMismatch: {
		503, grpcUnavailable, true, Operator,
		"The run was written by a newer engine than this one.",
		"Complete the upgrade: start a dispatcher of the newer version.",
	},
	PromptVariable: {
		422, grpcFailedPrecondition, false, WorkflowAuthor,
		"The prompt uses a variable without a value.",
		"Set the variable, or give it a default in the template.",
	},
	TemplateNotFound: {
		404, grpcNotFound, false, WorkflowAuthor,
		"The host does not have this prompt template or version.",
		"Use an available template and version, or have the operator load it with --prompts.",
	},
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
