package fault

// outcomes are the codes that appear only in the error of a run or node.
var outcomes = map[Code]Row{
	UnsupportedNodeType: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "No node type with this typeId is registered.",
		Next:    "Use a registered typeId, or have the operator load the pack that contains it.",
	},
	CredentialRequired: {
		GRPC: grpcFailedPrecondition, Owner: Operator,
		Meaning: "The node needs a credential that is not configured.",
		Next:    "Set the provider's key in the host's environment or secrets file, and start the run again.",
	},
	CredentialUnavailable: {
		GRPC: grpcFailedPrecondition, Owner: Operator,
		Meaning: "The node needs a secret, but the host has no source of secrets.",
		Next:    "Configure a source of secrets, or remove the credential from the workflow.",
	},
	CredentialNotFound: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "The named credential does not exist.",
		Next:    "Use an existing credential, or have the operator store it.",
	},
	UnsupportedModality: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "The provider does not support this type of content.",
		Next:    "Use a model that supports this type of content, or omit the content.",
	},
	RecursionLimit: {
		GRPC: grpcResourceExhausted, Owner: WorkflowAuthor,
		Meaning: "The run executed more nodes than its limit allows, or runs are nested too deeply.",
		Next:    "Check for an endless loop, or split the work into child runs. configurable.recursionLimit can only lower the limit; the operator raises it with --max-node-executions.",
	},
	UnknownChildWorkflow: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "A node names a workflow that does not exist.",
		Next:    "Register the workflow that the node names, or correct the name.",
	},
	ChildFailed: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "A run that a node started did not complete.",
		Next:    "Check the run that details name; its error is the cause.",
	},
	RunTimeout: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "The run took longer than its limit allows.",
		Next:    "Find the slow node with `waybill run watch RUN`. The limits are configurable.runTimeoutMs, the workflow's settings.timeout and --max-run-duration.",
	},
	ChannelAccessDenied: {
		GRPC: grpcPermissionDenied, Owner: WorkflowAuthor,
		Meaning: "The node has no access to the channel.",
		Next:    "Add the node to the channel's access, or use another channel.",
	},
	ChannelSchemaBreaking: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "The channel holds data that its current schema cannot read.",
		Next:    "Use a schemaVersion that can read the old data, or start a new run.",
	},
	VersionOutOfRange: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "The run is pinned to a code version that this host no longer has.",
		Next:    "Keep the code path of that version until its runs have ended, or fork the run from before the pin.",
	},
	ReplaySourceMissing: {
		GRPC: grpcFailedPrecondition, Owner: Caller,
		Meaning: "A replay needs the recorded outcome of an effect, and the source recorded none.",
		Next:    "Fork with mode branch, which executes the effect again, or fork from a later event.",
	},
	LoopLimit: {
		GRPC: grpcResourceExhausted, Owner: WorkflowAuthor,
		Meaning: "A loop exceeded its limit of iterations.",
		Next:    "Make the loop end sooner, or raise its limit.",
	},
	NodeTimeout: {
		GRPC: grpcFailedPrecondition, Retryable: true, Owner: WorkflowAuthor,
		Meaning: "An attempt of a node took longer than its settings.timeoutMs.",
		Next:    "Raise settings.timeoutMs of the node, or find out why the effect is slow.",
	},
	CapBreached: {
		GRPC: grpcResourceExhausted, Owner: Operator,
		Meaning: "An envelope limit of the host was reached.",
		Next:    "Raise the limit that details name if the work is sound; otherwise have the workflow author find the cause.",
	},
	ProviderUnavailable: {
		GRPC: grpcUnavailable, Retryable: true, Owner: Operator,
		Meaning: "The provider was unreachable or failed.",
		Next:    "Check the connection to the provider, then fork the run.",
	},
	ProviderQuota: {
		GRPC: grpcResourceExhausted, Retryable: true, Owner: Operator,
		Meaning: "The provider rejected the call because of a quota or rate limit.",
		Next:    "Raise the provider's quota or wait, then fork the run from before the call.",
	},
	ProviderNotSupported: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "The host has no provider with this id.",
		Next:    "Use a provider that `waybill capabilities` lists, or have the operator configure this one.",
	},
	ModelNotSupported: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "The provider does not offer this model.",
		Next:    "Use a model of the provider; `waybill model list` lists the catalogue.",
	},
	SchemaNotAccepted: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "The provider does not accept the response schema.",
		Next:    "Restrict the schema to the supported subset; check it with `waybill schema lint FILE`.",
	},
	ContentTooLong: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "A prompt, an answer, or a node's input or output exceeds the limit.",
		Next:    "Shorten the prompt, use a model with a larger context, or pass smaller values between nodes.",
	},
	ProviderRequest: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "The model's server does not accept the call: a parameter or a message of the node, or a member that the provider's settings add.",
		Next:    "Correct what the message names in the node's config. If it is none of the node's, the operator corrects the provider's entry in --provider-settings.",
	},
	ToolFailed: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "A tool or an agent reported a failure.",
		Next:    "See the tool's message in details. Correct its arguments, or contact the tool's operator.",
	},
	OutcomeUnknown: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "The dispatcher stopped after it may have sent a call and before it recorded the result; the call may have taken effect.",
		Next:    "Look up details.idempotencyKey at the receiver, then fork the run in mode branch. Set the node's settings.onUnknownOutcome to retry or ask, or mark the tool as idempotent.",
	},
	PeerInputRequired: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "A tool or an agent requested input that a workflow cannot provide.",
		Next:    "Pass all required arguments, or use a tool that needs no further input.",
	},
	InterruptRejected: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "The approval was rejected, or not granted in time.",
		Next:    "Read the reason in the answer, change the proposal, and start or fork the run.",
	},
	InterruptTimeout: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "The interrupt was not answered in time.",
		Next:    "Raise timeoutMs, or notify people earlier; fork the run to open the interrupt again.",
	},
	ConformanceFailure: {
		GRPC: grpcFailedPrecondition, Owner: WorkflowAuthor,
		Meaning: "core.fail failed the node, as intended.",
		Next:    "No action: the node fails on purpose.",
	},
}
