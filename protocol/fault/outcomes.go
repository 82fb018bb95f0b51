package fault

// outcomes are the codes that appear only in the error of a run or node.
var outcomes = map[Code]Row{
	UnsupportedNodeType: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"No node of this typeId is registered.",
		"Use a typeId that the host knows, or have the operator load the pack that brings it.",
	},
	CredentialRequired: {
		0, grpcFailedPrecondition, false, Operator,
		"The node needs a credential that is not there; set the provider's key.",
		"Set the provider's key in the host's environment or secrets file, and start the run again.",
	},
	CredentialUnavailable: {
		0, grpcFailedPrecondition, false, Operator,
		"The host offers no secrets, the node needs one.",
		"Give the host a source of secrets, or take the credential out of the workflow.",
	},
	CredentialNotFound: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The named credential does not exist.",
		"Name a credential that exists, or have the operator store it.",
	},
	UnsupportedModality: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The provider does not take this kind of content.",
		"Choose a model that takes this kind of content, or leave the content out.",
	},
	RecursionLimit: {
		0, grpcResourceExhausted, false, WorkflowAuthor,
		"The run executed more nodes than its limit allows, or runs are nested too deeply.",
		"Look for a loop that has no end, or split the work into child runs. configurable.recursionLimit can only lower the limit; the operator raises it with --max-node-executions.",
	},
	UnknownChildWorkflow: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"A node names a workflow to run that is not there.",
		"Register the workflow that the node names, or correct the name.",
	},
	ChildFailed: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"A run that a node started did not complete.",
		"Look at the run that details name: its error is the cause.",
	},
	RunTimeout: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The run took longer than its limit allows.",
		"Find the node that took long: `waybill run watch RUN`. A limit of the run is configurable.runTimeoutMs or the workflow's settings.timeout; the host's is --max-run-duration.",
	},
	ChannelAccessDenied: {
		0, grpcPermissionDenied, false, WorkflowAuthor,
		"The channel's access does not let the node read or write it.",
		"Add the node to the channel's access, or use another channel.",
	},
	ChannelSchemaBreaking: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The channel holds a write of an older schema that its current one no longer reads.",
		"Raise the channel's schemaVersion in a way that reads old values, or start a new run.",
	},
	VersionOutOfRange: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The run has settled for a version of a change that this host's code no longer has.",
		"Keep the code path of that version until its runs have ended, or fork the run from before the pin.",
	},
	ReplaySourceMissing: {
		0, grpcFailedPrecondition, false, Caller,
		"A replay needs the recorded outcome of an effect, and the source recorded none.",
		"Fork with mode branch, which carries the effect out again, or from a later event.",
	},
	LoopLimit: {
		0, grpcResourceExhausted, false, WorkflowAuthor,
		"A loop would have gone on for more rounds than its limit allows.",
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
		"Raise the limit that details name if the work is sound; otherwise have the author find the loop that asks for so much.",
	},
	ProviderUnavailable: {
		0, grpcUnavailable, true, Operator,
		"The model's server could not be reached or failed.",
		"Check that the host reaches the provider; the run can be forked once it does.",
	},
	ProviderQuota: {
		0, grpcResourceExhausted, true, Operator,
		"The model's server refused for quota or rate.",
		"Raise the quota at the provider or wait; the run can be forked from before the call.",
	},
	ProviderNotSupported: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The host has no provider of this id.",
		"Name a provider that the host has, as `waybill capabilities` shows, or have the operator configure this one.",
	},
	ModelNotSupported: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The provider does not know this model.",
		"Name a model that the provider has; `waybill model list` shows those of the catalogue.",
	},
	SchemaNotAccepted: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The provider does not accept the response schema.",
		"Bring the schema into the subset that models can be held to: `waybill schema lint FILE`.",
	},
	ContentTooLong: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The prompt, the answer, or what a node is given or makes, is larger than the limit.",
		"Send the model less, or choose one with a larger context; hand smaller values from node to node.",
	},
	ToolFailed: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"A tool or an agent was asked, and says that it failed.",
		"See the tool's message in details; correct its arguments, or ask whoever runs it.",
	},
	OutcomeUnknown: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"The dispatcher stopped after it may have sent a call and before it recorded the result; the call may have taken effect.",
		"Look up details.idempotencyKey at the receiver, then fork the run in mode branch. Set the node's settings.onUnknownOutcome to retry or ask, or mark the tool as idempotent.",
	},
	PeerInputRequired: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"A tool or an agent asks for input that a workflow cannot give.",
		"Give the tool all it needs in its arguments, or use one that asks nothing back.",
	},
	InterruptRejected: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"Somebody rejected what the run asked to have approved, or nobody approved it in time.",
		"See the reason with the answer, change what was asked to be approved, and start or fork the run.",
	},
	InterruptTimeout: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"Nobody answered what the run asked in time.",
		"Give people more time with timeoutMs, or tell them sooner; fork the run to ask again.",
	},
	ConformanceFailure: {
		0, grpcFailedPrecondition, false, WorkflowAuthor,
		"core.fail did what it is for.",
		"Nothing: the node fails on purpose.",
	},
}
