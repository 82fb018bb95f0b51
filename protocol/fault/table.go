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
		"streamMode names a mode this host does not serve, or combines values with another mode.",
		"Ask for one of values, updates, messages, debug, or a list of them that does not mix values with another.",
	},
	UnsupportedMockProvider: {
		400, grpcInvalidArgument, false, Caller,
		"configurable.mockProvider.id is not in the catalogue.",
		"Use a mock provider that the host's discovery document lists, or leave configurable.mockProvider out.",
	},
	UnsupportedForceEngine: {
		400, grpcInvalidArgument, false, Caller,
		"X-Force-Engine-Version lies outside the advertised range.",
		"Leave the header out, or send a version within the range that the host advertises.",
	},
	CapabilityRequired: {
		400, grpcFailedPrecondition, false, Operator,
		"The workflow uses a node type whose capability this host does not offer.",
		"Switch the capability on that details name, or run the workflow on a host that offers it; `waybill capabilities` shows what this one does.",
	},
	ResidencyUnavailable: {
		400, grpcInvalidArgument, false, Caller,
		"The asked data region is not offered.",
		"Ask for a region that the discovery document lists, or leave the region out.",
	},
	WebhookURLRejected: {
		400, grpcInvalidArgument, false, Caller,
		"The URL of a webhook is not one this host calls: want https and a public address.",
		"Give an https URL whose host has a public address.",
	},
	InvalidArgument: {
		400, grpcInvalidArgument, false, Caller,
		"A test seam was given a body it cannot use.",
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
		"Ask the operator for a new key and use it from now on.",
	},
	KeyRevoked: {
		401, grpcUnauthenticated, false, Caller,
		"The key was revoked.",
		"Ask the operator why, and for a new key.",
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
		"Use a test key, or leave configurable.mockProvider out.",
	},
	ForceEngineForbidden: {
		403, grpcPermissionDenied, false, Caller,
		"X-Force-Engine-Version needs a test key.",
		"Use a test key, or leave the header out.",
	},
	CredentialForbidden: {
		403, grpcFailedPrecondition, false, Caller,
		"The provider takes no credential of the caller's own.",
		"Leave the credential out, so that the host's own is used, or name a provider that takes one.",
	},
	ProviderPolicyDenied: {
		403, grpcPermissionDenied, false, Operator,
		"The provider policy of the tenant forbids this call.",
		"Allow the provider or model in the tenant's policy, or have the workflow name one that is allowed.",
	},
	AuthElevationRequired: {
		403, grpcPermissionDenied, false, Caller,
		"The interrupt takes a credential with approvals:respond; its token is not enough.",
		"Answer with a key that has the scope approvals:respond.",
	},

	NotFound: {
		404, grpcNotFound, false, Caller,
		"Nothing is at this address.",
		"Check the address, and the host, base path and id in it.",
	},
	RunNotFound: {
		404, grpcNotFound, false, Caller,
		"No run of this id in your tenant.",
		"Check the id, and that the key is of the tenant that owns the run; `waybill run list` shows its runs.",
	},
	NotQuarantined: {
		404, grpcNotFound, false, Caller,
		"No quarantined run of this id in your tenant.",
		"List the quarantined runs: `waybill run quarantine list`. Only those can be retried or ended so; `waybill run cancel RUN` ends any other.",
	},
	WorkflowNotFound: {
		404, grpcNotFound, false, Caller,
		"No workflow of this id in your tenant.",
		"Check the id: `waybill workflow list` shows those there are; register the workflow first, or have the operator load it with --workflows.",
	},
	InterruptNotFound: {
		404, grpcNotFound, false, Caller,
		"The node has no interrupt, or the token is none of this host.",
		"See which runs and nodes wait: `waybill interrupt list`; the link of a page for answers is good for a while only.",
	},
	MethodNotAllowed: {
		405, grpcUnimplemented, false, Caller,
		"The address is known but not with this method; see the Allow header.",
		"Use one of the methods of the Allow header.",
	},
	SubscriptionNotFound: {
		404, grpcNotFound, false, Caller,
		"No webhook of this id in your tenant.",
		"List the webhooks of the tenant, and use an id of that list.",
	},

	RunAlreadyActive: {
		409, grpcAlreadyExists, true, Caller,
		"X-Dedup: enforce, and a run of the scope is active; details name it.",
		"Follow the run that details name, or try again when it has ended.",
	},
	IdempotencyKeyMismatch: {
		409, grpcAborted, false, Caller,
		"The Idempotency-Key was used with another request.",
		"Use a new key for a new request; send the old request unchanged to have its answer again.",
	},
	IdempotencyInFlight: {
		409, grpcAborted, true, Caller,
		"The first request with this Idempotency-Key is still running.",
		"Wait as long as Retry-After says and send the same request with the same key again.",
	},
	Conflict: {
		409, grpcAborted, false, Caller,
		"The resource is in a state that does not allow this.",
		"Read the resource again, and decide by its present state.",
	},
	RunTerminal: {
		409, grpcFailedPrecondition, false, Caller,
		"The run has already ended.",
		"Nothing is left to do with this run; fork it, or start a new one.",
	},
	UntrustedBlocksApproval: {
		409, grpcFailedPrecondition, false, WorkflowAuthor,
		"Untrusted content never advances an approval.",
		"Have a person review the content and reject or refine it, or take the untrusted source out of the way to this approval.",
	},
	EnvelopeCorrelationClash: {
		409, grpcAborted, false, Model,
		"The correlationId was used in this run by an envelope of another type.",
		"Give every emission a correlationId of its own; use one again only to repeat the same emission.",
	},

	InterruptResolved: {
		409, grpcAborted, false, Caller,
		"The interrupt was resolved before.",
		"Look at the run: somebody answered before. Nothing more is to be sent.",
	},
	InterruptExpired: {
		410, grpcFailedPrecondition, false, WorkflowAuthor,
		"The time for an answer is over.",
		"Give the interrupt a longer timeoutMs, or fork the run from before the wait.",
	},
	InterruptGone: {
		410, grpcFailedPrecondition, false, Caller,
		"The run has ended, and its interrupts with it.",
		"Look at how the run has ended; fork it to ask again.",
	},
	RunExpired: {
		410, grpcFailedPrecondition, false, Caller,
		"What the run's log has kept does not reach back far enough; details say how far it does.",
		"Read from the sequence that details say is kept, or take the snapshot of the run instead.",
	},

	PayloadTooLarge: {
		413, grpcResourceExhausted, false, Caller,
		"The body is larger than limits.maxRequestBodyBytes.",
		"Send less, or put the large part where it can be named by a URL; the operator sets --max-request-body-bytes.",
	},

	CorrelationMismatch: {
		422, grpcFailedPrecondition, false, Caller,
		"The event from outside is not the one that the run waits for.",
		"Send the correlation id that the interrupt shows: `waybill interrupt show RUN NODE`.",
	},
	ForkInvalidSeq: {
		422, grpcFailedPrecondition, false, Caller,
		"fromSeq lies beyond what the run to fork has recorded.",
		"Choose a fromSeq that the run has recorded: `waybill run events RUN` numbers them.",
	},
	InvalidEnvelopeShape: {
		422, grpcFailedPrecondition, false, Model,
		"The document is not an AI envelope.",
		"Emit type, schemaVersion, envelopeId, correlationId and payload as the kind's schema shows; `waybill envelope validate` says which is wrong.",
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
		"Correct the payload at the pointers that details name; if models keep failing, make the schema simpler.",
	},
	EnvelopeContractViolation: {
		422, grpcFailedPrecondition, false, WorkflowAuthor,
		"The node's contract does not accept this kind.",
		"Add the refused kind to the node's contract, or tell the model in the prompt which kinds are accepted.",
	},
	EnvelopeTruncationTerminal: {
		422, grpcFailedPrecondition, false, WorkflowAuthor,
		"The model was cut off on every attempt, also with a larger budget.",
		"Raise the node's maxTokens, ask for less in one answer, or choose a model with a longer answer.",
	},
	EnvelopeRefusal: {
		422, grpcFailedPrecondition, false, WorkflowAuthor,
		"The model refused; never retried.",
		"Change the prompt or the input, or choose another model; the same question is refused again.",
	},
	HostCapabilityMissing: {
		422, grpcFailedPrecondition, false, Operator,
		"A pack, or a call of a node, needs a capability that this host does not offer.",
		"Switch the capability on that details name, or remove the pack.",
	},

	ClientVersionUnsupported: {
		426, grpcFailedPrecondition, false, Caller,
		"The client is older than minClientVersion.",
		"Update the client to the minClientVersion of the discovery document.",
	},
	RateLimited: {
		429, grpcResourceExhausted, true, Caller,
		"Too many requests; wait Retry-After seconds.",
		"Wait as long as Retry-After says; send fewer requests at a time.",
	},

	LogDamaged: {
		500, grpcDataLoss, false, Operator,
		"The run's log does not match its checksums, so the run can be neither read nor continued.",
		"Restore the log from a backup; the run then continues by itself. `waybill run quarantine list` shows such runs, and the host's log names the frame.",
	},
	InternalError: {
		500, grpcInternal, true, Operator,
		"Something failed inside; details.correlationId finds it in the logs.",
		"Look for details.correlationId in the host's logs; a client may send the same request again with the same key.",
	},
	CapabilityNotProvided: {
		501, grpcFailedPrecondition, false, Operator,
		"A capability the request or node needs is not provided by this host.",
		"Configure what the message names, such as a provider's key or a model that has the capability, or change the workflow.",
	},
	ServiceUnavailable: {
		503, grpcUnavailable, true, Operator,
		"The host cannot take the request now; wait Retry-After seconds.",
		"See readyz and `waybill doctor` for what is down; a client waits as long as Retry-After says.",
	},
	EngineVersionMismatch: {
		503, grpcUnavailable, true, Operator,
		"The run was written by a newer engine than this one.",
		"Finish the update: let a dispatcher of the newer version run.",
	},
	PromptVariable: {
		422, grpcFailedPrecondition, false, WorkflowAuthor,
		"The prompt names a variable that has no value.",
		"Give the variable a value, or a default in the template.",
	},
	TemplateNotFound: {
		404, grpcNotFound, false, WorkflowAuthor,
		"The host has no such prompt template, or not in this version.",
		"Name a template and version that the host has, or have the operator load it with --prompts.",
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
