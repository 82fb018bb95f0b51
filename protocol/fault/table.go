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
		HTTP: 400, GRPC: grpcInvalidArgument, Owner: Caller,
		Meaning: "The request does not have the shape or the values it must have; details name the members.",
		Next:    "Correct the members that details name, and send the request again.",
	},
	UnsupportedStreamMode: {
		HTTP: 400, GRPC: grpcInvalidArgument, Owner: Caller,
		Meaning: "streamMode names a mode this host does not support, or combines values with another mode.",
		Next:    "Use values, updates, messages or debug, or a list of them without values.",
	},
	UnsupportedMockProvider: {
		HTTP: 400, GRPC: grpcInvalidArgument, Owner: Caller,
		Meaning: "configurable.mockProvider.id is not in the catalogue.",
		Next:    "Use a mock provider that the host's discovery document lists, or omit configurable.mockProvider.",
	},
	UnsupportedForceEngine: {
		HTTP: 400, GRPC: grpcInvalidArgument, Owner: Caller,
		Meaning: "X-Force-Engine-Version is outside the advertised range.",
		Next:    "Omit the header, or send a version within the advertised range.",
	},
	CapabilityRequired: {
		HTTP: 400, GRPC: grpcFailedPrecondition, Owner: Operator,
		Meaning: "The workflow uses a node type whose capability this host does not offer.",
		Next:    "Enable the capability that details name, or use a host that offers it. `waybill capabilities` lists what this host offers.",
	},
	ResidencyUnavailable: {
		HTTP: 400, GRPC: grpcInvalidArgument, Owner: Caller,
		Meaning: "The requested data region is not available.",
		Next:    "Use a region that the discovery document lists, or omit the region.",
	},
	WebhookURLRejected: {
		HTTP: 400, GRPC: grpcInvalidArgument, Owner: Caller,
		Meaning: "The webhook URL is not allowed: it needs https and a public address.",
		Next:    "Give an https URL whose host has a public address.",
	},
	InvalidArgument: {
		HTTP: 400, GRPC: grpcInvalidArgument, Owner: Caller,
		Meaning: "A test seam received an invalid body.",
		Next:    "Send the body that the test seam documents; details name the member.",
	},

	Unauthenticated: {
		HTTP: 401, GRPC: grpcUnauthenticated, Owner: Caller,
		Meaning: "No valid credential: send Authorization: Bearer <key>.",
		Next:    "Send a key of this host as Authorization: Bearer; with the command line, set WAYBILL_TOKEN or a context.",
	},
	KeyExpired: {
		HTTP: 401, GRPC: grpcUnauthenticated, Owner: Caller,
		Meaning: "The key has expired.",
		Next:    "Get a new key from the operator.",
	},
	KeyRevoked: {
		HTTP: 401, GRPC: grpcUnauthenticated, Owner: Caller,
		Meaning: "The key was revoked.",
		Next:    "Get a new key from the operator.",
	},

	Forbidden: {
		HTTP: 403, GRPC: grpcPermissionDenied, Owner: Caller,
		Meaning: "The credential lacks the scope in details.scopeRequired, or names another tenant; or a write of a console session lacks its header.",
		Next:    "Use a key with the scope that details.scopeRequired names, of the tenant that owns the resource.",
	},
	RunForbidden: {
		HTTP: 403, GRPC: grpcPermissionDenied, Owner: Caller,
		Meaning: "The run belongs to another workspace of the tenant.",
		Next:    "Use a key of the workspace that owns the run.",
	},
	MockProviderForbidden: {
		HTTP: 403, GRPC: grpcPermissionDenied, Owner: Caller,
		Meaning: "mockProvider needs a test key.",
		Next:    "Use a test key, or omit configurable.mockProvider.",
	},
	ForceEngineForbidden: {
		HTTP: 403, GRPC: grpcPermissionDenied, Owner: Caller,
		Meaning: "X-Force-Engine-Version needs a test key.",
		Next:    "Use a test key, or omit the header.",
	},
	CredentialForbidden: {
		HTTP: 403, GRPC: grpcFailedPrecondition, Owner: Caller,
		Meaning: "The provider does not accept the caller's own credential.",
		Next:    "Omit the credential to use the host's own, or use a provider that accepts one.",
	},
	ProviderPolicyDenied: {
		HTTP: 403, GRPC: grpcPermissionDenied, Owner: Operator,
		Meaning: "The provider policy of the tenant forbids this call.",
		Next:    "Allow the provider or model in the tenant's policy, or use an allowed one in the workflow.",
	},
	AuthElevationRequired: {
		HTTP: 403, GRPC: grpcPermissionDenied, Owner: Caller,
		Meaning: "The interrupt requires a credential with approvals:respond; its token is not sufficient.",
		Next:    "Answer with a key that has the scope approvals:respond.",
	},

	NotFound: {
		HTTP: 404, GRPC: grpcNotFound, Owner: Caller,
		Meaning: "The address does not exist.",
		Next:    "Check the address, and the host, base path and id in it.",
	},
	RunNotFound: {
		HTTP: 404, GRPC: grpcNotFound, Owner: Caller,
		Meaning: "Your tenant has no run with this id.",
		Next:    "Check the id and that the key belongs to the tenant of the run. `waybill run list` lists its runs.",
	},
	NotQuarantined: {
		HTTP: 404, GRPC: grpcNotFound, Owner: Caller,
		Meaning: "Your tenant has no quarantined run with this id.",
		Next:    "List the quarantined runs: `waybill run quarantine list`. End any other run with `waybill run cancel RUN`.",
	},
	WorkflowNotFound: {
		HTTP: 404, GRPC: grpcNotFound, Owner: Caller,
		Meaning: "Your tenant has no workflow with this id.",
		Next:    "Check the id with `waybill workflow list`. Register the workflow, or have the operator load it with --workflows.",
	},
	InterruptNotFound: {
		HTTP: 404, GRPC: grpcNotFound, Owner: Caller,
		Meaning: "The node has no interrupt, or the token is not valid on this host.",
		Next:    "List open interrupts with `waybill interrupt list`. Links to answer pages expire.",
	},
	MethodNotAllowed: {
		HTTP: 405, GRPC: grpcUnimplemented, Owner: Caller,
		Meaning: "The address does not support this method; see the Allow header.",
		Next:    "Use one of the methods of the Allow header.",
	},
	SubscriptionNotFound: {
		HTTP: 404, GRPC: grpcNotFound, Owner: Caller,
		Meaning: "Your tenant has no webhook with this id.",
		Next:    "List the tenant's webhooks and use one of their ids.",
	},

	RunAlreadyActive: {
		HTTP: 409, GRPC: grpcAlreadyExists, Retryable: true, Owner: Caller,
		Meaning: "X-Dedup is enforce, and a run with the same scope is active; details name it.",
		Next:    "Follow the run that details name, or retry after it has ended.",
	},
	IdempotencyKeyMismatch: {
		HTTP: 409, GRPC: grpcAborted, Owner: Caller,
		Meaning: "The Idempotency-Key was used with another request.",
		Next:    "Use a new key for a new request; send the old request unchanged to get its answer again.",
	},
	IdempotencyInFlight: {
		HTTP: 409, GRPC: grpcAborted, Retryable: true, Owner: Caller,
		Meaning: "The first request with this Idempotency-Key is still running.",
		Next:    "Wait for Retry-After, then send the same request with the same key again.",
	},
	Conflict: {
		HTTP: 409, GRPC: grpcAborted, Owner: Caller,
		Meaning: "The resource is in a state that does not allow this.",
		Next:    "Read the resource again and act on its current state.",
	},
	RunTerminal: {
		HTTP: 409, GRPC: grpcFailedPrecondition, Owner: Caller,
		Meaning: "The run has already ended.",
		Next:    "Fork the run, or start a new one.",
	},
	UntrustedBlocksApproval: {
		HTTP: 409, GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "Untrusted content never advances an approval.",
		Next:    "Have a person review the content and reject or refine it, or remove the untrusted source from the path to this approval.",
	},
	EnvelopeCorrelationClash: {
		HTTP: 409, GRPC: grpcAborted, Owner: Model,
		Meaning: "The correlationId was used in this run by an envelope of another type.",
		Next:    "Use a unique correlationId for each emission; reuse one only to repeat the same emission.",
	},

	InterruptResolved: {
		HTTP: 409, GRPC: grpcAborted, Owner: Caller,
		Meaning: "The interrupt was already resolved.",
		Next:    "No further answer is needed. The run shows the recorded one.",
	},
	InterruptExpired: {
		HTTP: 410, GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "The deadline for an answer has passed.",
		Next:    "Give the interrupt a longer timeoutMs, or fork the run from before the wait.",
	},
	InterruptGone: {
		HTTP: 410, GRPC: grpcFailedPrecondition, Owner: Caller,
		Meaning: "The run has ended, so its interrupts are closed.",
		Next:    "Check how the run ended; fork it to open the interrupt again.",
	},
	RunExpired: {
		HTTP: 410, GRPC: grpcFailedPrecondition, Owner: Caller,
		Meaning: "The requested events are no longer retained; details give the first retained sequence.",
		Next:    "Read from the sequence in details, or read the run's snapshot.",
	},

	PayloadTooLarge: {
		HTTP: 413, GRPC: grpcResourceExhausted, Owner: Caller,
		Meaning: "The body is larger than limits.maxRequestBodyBytes.",
		Next:    "Send less, or reference large content by URL. The operator sets --max-request-body-bytes.",
	},

	RangeNotSatisfiable: {
		HTTP: 416, GRPC: grpcOutOfRange, Owner: Caller,
		Meaning: "The Range header names no part of the asset.",
		Next:    "Send a range within details.sizeBytes, such as bytes=0-1023, or no Range header.",
	},

	CorrelationMismatch: {
		HTTP: 422, GRPC: grpcFailedPrecondition, Owner: Caller,
		Meaning: "The external event is not the one that the run waits for.",
		Next:    "Send the correlation id that the interrupt shows: `waybill interrupt show RUN NODE`.",
	},
	ForkInvalidSeq: {
		HTTP: 422, GRPC: grpcFailedPrecondition, Owner: Caller,
		Meaning: "fromSeq is beyond the last recorded event of the source run.",
		Next:    "Choose a recorded sequence; `waybill run events RUN` lists them.",
	},
	InvalidEnvelopeShape: {
		HTTP: 422, GRPC: grpcFailedPrecondition, Owner: Model,
		Meaning: "The document is not an AI envelope.",
		Next:    "Emit type, schemaVersion, envelopeId, correlationId and payload as the kind's schema shows; `waybill envelope validate` reports the problems.",
	},
	UnknownEnvelopeKind: {
		HTTP: 422, GRPC: grpcFailedPrecondition, Owner: Model,
		Meaning: "The host does not advertise this envelope kind.",
		Next:    "Emit a kind that the host advertises, or have the operator load it with --kinds or a pack.",
	},
	UnknownSchemaVersion: {
		HTTP: 422, GRPC: grpcFailedPrecondition, Owner: Model,
		Meaning: "The envelope's schemaVersion is not the advertised one.",
		Next:    "Emit the schemaVersion that the host advertises for the kind.",
	},
	EnvelopeInvalid: {
		HTTP: 422, GRPC: grpcFailedPrecondition, Owner: Model,
		Meaning: "The payload does not satisfy the schema of its kind.",
		Next:    "Correct the payload at the pointers in details. If models keep failing, simplify the schema.",
	},
	EnvelopeContractViolation: {
		HTTP: 422, GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "The node's contract does not accept this kind.",
		Next:    "Add the refused kind to the node's contract, or list the accepted kinds in the prompt.",
	},
	EnvelopeTruncationTerminal: {
		HTTP: 422, GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "The answer was truncated on every attempt, even with a larger budget.",
		Next:    "Raise the node's maxTokens, request a shorter answer, or use a model with a larger output limit.",
	},
	EnvelopeRefusal: {
		HTTP: 422, GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "The model refused the request. Refusals are not retried.",
		Next:    "Change the prompt or the input, or use another model; the same request will be refused again.",
	},
	HostCapabilityMissing: {
		HTTP: 422, GRPC: grpcFailedPrecondition, Owner: Operator,
		Meaning: "A pack or a node needs a capability that this host does not offer.",
		Next:    "Enable the capability that details name, or remove the pack.",
	},

	ClientVersionUnsupported: {
		HTTP: 426, GRPC: grpcFailedPrecondition, Owner: Caller,
		Meaning: "The client is older than minClientVersion.",
		Next:    "Update the client to the minClientVersion of the discovery document.",
	},
	RateLimited: {
		HTTP: 429, GRPC: grpcResourceExhausted, Retryable: true, Owner: Caller,
		Meaning: "Too many requests; wait Retry-After seconds.",
		Next:    "Wait for Retry-After, and send fewer concurrent requests.",
	},

	LogDamaged: {
		HTTP: 500, GRPC: grpcDataLoss, Owner: Operator,
		Meaning: "The run's log does not match its checksums, so the run can be neither read nor continued.",
		Next:    "Restore the log from a backup; the run then continues by itself. `waybill run quarantine list` shows such runs, and the host's log names the frame.",
	},
	InternalError: {
		HTTP: 500, GRPC: grpcInternal, Retryable: true, Owner: Operator,
		Meaning: "An internal error occurred; find it in the logs by details.correlationId.",
		Next:    "Search the host's logs for details.correlationId. A client may retry with the same key.",
	},
	CapabilityNotProvided: {
		HTTP: 501, GRPC: grpcFailedPrecondition, Owner: Operator,
		Meaning: "A capability the request or node needs is not provided by this host.",
		Next:    "Configure what the message names, such as a provider key or a capable model, or change the workflow.",
	},
	ServiceUnavailable: {
		HTTP: 503, GRPC: grpcUnavailable, Retryable: true, Owner: Operator,
		Meaning: "The host cannot process the request now; wait Retry-After seconds.",
		Next:    "Check /readyz and `waybill doctor`. Clients retry after Retry-After.",
	},
	EngineVersionMismatch: {
		HTTP: 503, GRPC: grpcUnavailable, Retryable: true, Owner: Operator,
		Meaning: "The run was written by a newer engine than this one.",
		Next:    "Complete the upgrade: start a dispatcher of the newer version.",
	},
	PromptVariable: {
		HTTP: 422, GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "The prompt uses a variable without a value.",
		Next:    "Set the variable, or give it a default in the template.",
	},
	TemplateNotFound: {
		HTTP: 404, GRPC: grpcNotFound, Owner: WorkflowAuthor,
		Meaning: "The host does not have this prompt template or version.",
		Next:    "Use an available template and version, or have the operator load it with --prompts.",
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
