package fault

// outcomes are the codes that appear only in the error of a run or node.
var outcomes = map[Code]Row{
	UnsupportedNodeType: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"No node type with this typeId is registered.",
		"Use a registered typeId, or have the operator load the pack that contains it.",
	},
	CredentialRequired: {
		0, grpcFailedPrecondition, false, Operator,
		"The node needs a credential that is not configured.",
		"Set the provider's key in the host's environment or secrets file, and start the run again.",
	},
	CredentialUnavailable: {
		0, grpcFailedPrecondition, false, Operator,
		"The node needs a secret, but the host has no source of secrets.",
		"Configure a source of secrets, or remove the credential from the workflow.",
	},
	CredentialNotFound: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The named credential does not exist.",
		"Use an existing credential, or have the operator store it.",
	},
	UnsupportedModality: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The provider does not support this type of content.",
		"Use a model that supports this type of content, or omit the content.",
	},
	RecursionLimit: {
		0, grpcResourceExhausted, false, WorkflowAuthor,
		"The run executed more nodes than its limit allows, or runs are nested too deeply.",
		"Check for an endless loop, or split the work into child runs. configurable.recursionLimit can only lower the limit; the operator raises it with --max-node-executions.",
	},
	UnknownChildWorkflow: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"A node names a workflow that does not exist.",
		"Register the workflow that the node names, or correct the name.",
	},
	ChildFailed: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"A run that a node started did not complete.",
		"Check the run that details name; its error is the cause.",
	},
	RunTimeout: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The run took longer than its limit allows.",
		"Find the slow node with `waybill run watch RUN`. The limits are configurable.runTimeoutMs, the workflow's settings.timeout and --max-run-duration.",
	},
	ChannelAccessDenied: {
		0, grpcPermissionDenied, false, WorkflowAuthor,
		"The node has no access to the channel.",
		"Add the node to the channel's access, or use another channel.",
	},
	ChannelSchemaBreaking: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The channel holds data that its current schema cannot read.",
		"Use a schemaVersion that can read the old data, or start a new run.",
	},
	VersionOutOfRange: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The run is pinned to a code version that this host no longer has.",
		"Keep the code path of that version until its runs have ended, or fork the run from before the pin.",
	},
	ReplaySourceMissing: {
		0, grpcFailedPrecondition, false, Caller,
		"A replay needs the recorded outcome of an effect, and the source recorded none.",
		"Fork with mode branch, which executes the effect again, or fork from a later event.",
	},
	LoopLimit: {
		0, grpcResourceExhausted, false, WorkflowAuthor,
		"A loop exceeded its limit of iterations.",
		"Make the loop end sooner, or raise its limit.",
	},
	NodeTimeout: {
		0, grpcFailedPrecondition, true, WorkflowAuthor,
		"An attempt of a node took longer than its settings.timeoutMs.",
		"Raise settings.timeoutMs of the node, or find out why the effect is slow.",
	},
	CapBreached: {
		0, grpcResourceExhausted, false, Operator,
		"An envelope limit of the host was reached.",
		"Raise the limit that details name if the work is sound; otherwise have the workflow author find the cause.",
	},
	ProviderUnavailable: {
		0, grpcUnavailable, true, Operator,
		"The provider was unreachable or failed.",
		"Check the connection to the provider, then fork the run.",
	},
	ProviderQuota: {
		0, grpcResourceExhausted, true, Operator,
		"The provider rejected the call because of a quota or rate limit.",
		"Raise the provider's quota or wait, then fork the run from before the call.",
	},
	ProviderNotSupported: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The host has no provider with this id.",
		"Use a provider that `waybill capabilities` lists, or have the operator configure this one.",
	},
	ModelNotSupported: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The provider does not offer this model.",
		"Use a model of the provider; `waybill model list` lists the catalogue.",
	},
	SchemaNotAccepted: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The provider does not accept the response schema.",
		"Restrict the schema to the supported subset; check it with `waybill schema lint FILE`.",
	},
	ContentTooLong: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"A prompt, an answer, or a node's input or output exceeds the limit.",
		"Shorten the prompt, use a model with a larger context, or pass smaller values between nodes.",
	},
	ProviderRequest: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The model's server does not accept the call: a parameter or a message of the node, or a member that the provider's settings add.",
		"Correct what the message names in the node's config. If it is none of the node's, the operator corrects the provider's entry in --provider-settings.",
	},
	ToolFailed: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"A tool or an agent reported a failure.",
		"See the tool's message in details. Correct its arguments, or contact the tool's operator.",
	},
	OutcomeUnknown: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The dispatcher stopped after it may have sent a call and before it recorded the result; the call may have taken effect.",
		"Look up details.idempotencyKey at the receiver, then fork the run in mode branch. Set the node's settings.onUnknownOutcome to retry or ask, or mark the tool as idempotent.",
	},
	PeerInputRequired: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"A tool or an agent requested input that a workflow cannot provide.",
		"Pass all required arguments, or use a tool that needs no further input.",
	},
	InterruptRejected: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The approval was rejected, or not granted in time.",
		"Read the reason in the answer, change the proposal, and start or fork the run.",
	},
	InterruptTimeout: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The interrupt was not answered in time.",
		"Raise timeoutMs, or notify people earlier; fork the run to open the interrupt again.",
	},
	ConformanceFailure: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"core.fail failed the node, as intended.",
		"No action: the node fails on purpose.",
	},
}
