package hostflags

import (
	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/host"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/internal/host/runlimits"
	"waybill.dev/waybill/internal/host/tools"
)

// Execution are the flags of what executes runs. Their defaults are in o.
func Execution(f *pflag.FlagSet, o *host.Execution) {
	f.StringArrayVar(&o.Workflows, "workflows", nil, "directory of *.json workflow definitions, watched for changes (repeatable)")
	f.StringVar(&o.Packs, "packs", "", "directory of packs, one folder with a pack.json each; their envelope kinds are served, their node types executed, and their prompt templates filled in")
	f.StringArrayVar(&o.RuntimeCapabilities, "runtime-capability", nil, "id of a runtime capability that pack nodes may require (repeatable)")
	f.DurationVar(&o.Lease, "lease", o.Lease, "time without a renewal after which other dispatchers take over a dispatcher's runs")
	f.DurationVar(&o.DrainTimeout, "drain-timeout", o.DrainTimeout, "on SIGTERM, how long to wait for running calls before releasing their runs; a second signal exits immediately")
	f.IntVar(&o.MaxRuns, "max-runs", o.MaxRuns, "maximum runs a dispatcher executes concurrently, excluding sleeping and waiting runs; another eighth, at least 1, is reserved for tenants below their share")
	RunLimits(f, &o.RunLimits)
	f.DurationVar(&o.QuestionTimeout, "question-timeout", 0, "time limit for answers to a model's questions if its node sets none; without an answer the node fails; 0 means no limit")
	f.StringVar(&o.Retention, "retention", o.Retention, "how long runs are kept after their end, such as 90d or 36h, if neither their workflow nor their tenant sets it; unlimited keeps them")
	f.Float64Var(&o.RetentionRate, "retention-rate", o.RetentionRate, "maximum runs per second that are erased because their retention is over")
	f.StringVar(&o.Archive, "archive", "", "directory or s3://BUCKET/PREFIX that keeps archives of ended runs; runs whose retention is over are erased only when they are archived; settings of a bucket are those of the AWS_ variables; empty keeps none")
	f.IntVar(&o.MaxHandedOut, "max-handed-out", o.MaxHandedOut, "maximum runs delivered to all dispatchers together, including fetched ones; use the same value for all dispatchers")
	f.DurationVar(&o.MaxQueueWait, "max-queue-wait", o.MaxQueueWait, "maximum time a new run may wait for a slot of --max-runs before starts get 503; 0 means no limit")
	f.Int64Var(&o.AssetMemory, "max-asset-memory", o.AssetMemory, "maximum bytes of images, sounds and files in memory for the prompts of a dispatcher; other prompts wait")
	f.StringVar(&o.TenantLimits, "tenant-limits", "", "JSON file with weights, priorities, concurrency and rate limits of tenants, reloaded when it changes; empty means equal tenants without limits")
	f.StringVar(&o.ToolLimits, "tool-limits", "", "JSON file with concurrency and rate limits of MCP servers, their tools and A2A agents, reloaded when it changes; empty means no limits")
	f.IntVar(&o.MaxRetryAttempts, "max-retry-attempts", o.MaxRetryAttempts, "maximum calls of a model for one answer, the first included; --limit-schema-rounds limits them as well")
	f.IntVar(&o.TruncationMultiplier, "truncation-multiplier", o.TruncationMultiplier, "growth of the token budget when a model was cut off")
	modelFlags(f, &o.Models)
	prompts(f, &o.Prompts)
	toolFlags(f, &o.Tools)
}

// RunLimits are the flags of the limits on a run.
func RunLimits(f *pflag.FlagSet, o *runlimits.Limits) {
	f.IntVar(&o.MaxNodeExecutions, "max-node-executions", o.MaxNodeExecutions, "maximum node executions of a run, including retries; runs keep the limit of their creation")
	f.DurationVar(&o.MaxRunDuration, "max-run-duration", o.MaxRunDuration, "maximum duration of a run, excluding pauses, waits for answers and waits of core.delay; runs keep the limit of their creation")
}

func modelFlags(f *pflag.FlagSet, o *models.Options) {
	f.StringArrayVar(&o.ProviderFlags, "provider", nil,
		"openai, anthropic or gemini, enabled by default if its key is set; or ID=URL of an OpenAI-compatible server (repeatable); the key is read from WAYBILL_PROVIDER_ID_KEY, or from the file named by WAYBILL_PROVIDER_ID_KEY_FILE")
	f.StringVar(&o.DefaultModel, "default-model", "", "PROVIDER/MODEL for nodes without a model; empty uses the first vendor with a key, else sample/sample-1")
	f.StringVar(&o.CredentialsDir, "credentials", "", "directory of tenants' own keys, one file per key: TENANT/PROVIDER/REF; a run selects its key with configurable.ai.credentialRef")
	f.StringVar(&o.PoliciesFile, "provider-policies", "", "JSON file that restricts tenants to providers, models and keys; empty allows all")
	f.StringVar(&o.SettingsFile, "provider-settings", "", "JSON file of the providers: address, key, headers, API, time limits, concurrent calls and rates, and the models to call when one fails; empty uses the defaults")
	f.StringVar(&o.CatalogueFile, "models", "", "JSON file of models, rules and prices that overrides the built-in model catalogue")
	f.StringVar(&o.UnknownModels, "unknown-models", o.UnknownModels, "refuse or trust: whether a model without a catalogue entry meets a node's requirements")
	f.StringVar(&o.Directive, "reasoning-directive", o.Directive, "mandatory, advisory or off: how strongly models are instructed to fill the reasoning member of an answer")
	f.BoolVar(&o.Substitution, "model-substitution", o.Substitution, "call the fallback model of a node's type if the node's model lacks a required capability; false rejects the node")
	f.StringArrayVar(&o.FallbackHidden, "hide-fallback", nil, "tenant whose runs do not show substituted models (repeatable; * means all tenants)")
	f.StringVar(&o.RefusalText, "refusal-text", o.RefusalText, "redacted or none: whether a run records the text of a model's refusal, without secrets and without words of the prompt")
}

func prompts(f *pflag.FlagSet, o *packs.PromptOptions) {
	f.StringVar(&o.Dir, "prompts", "", "directory of prompt templates, one *.json file per template, in addition to those of packs")
	f.StringVar(&o.Observability, "prompt-observability", "",
		"off, hashed or full: whether the prompts of model calls are recorded as prompt.composed events, as digests or as they are sent, without secrets; empty records digests of prompts from templates only")
}

func toolFlags(f *pflag.FlagSet, o *tools.Options) {
	f.StringArrayVar(&o.MCPServers, "mcp-server", nil,
		"ID=URL of an MCP server (streamable HTTP), or ID=stdio:COMMAND ARGS (repeatable); its bearer token is read from WAYBILL_MCP_ID_TOKEN, variables of a command from WAYBILL_MCP_ID_ENV_NAME, or WAYBILL_MCP_ID_SECRET_NAME if they are secret")
	f.StringArrayVar(&o.Idempotent, "idempotent-tool", nil,
		"SERVER/TOOL of an idempotent MCP tool (repeatable); a call with an unknown outcome after a crash is then repeated instead of failing its node")
	f.StringArrayVar(&o.A2AAgents, "a2a-agent", nil, "ID=URL of an A2A agent (repeatable); its bearer token is read from WAYBILL_A2A_ID_TOKEN")
}
