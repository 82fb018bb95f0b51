package hostflags

import (
	"time"

	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/host"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/internal/host/runlimits"
	"waybill.dev/waybill/internal/host/tools"
)

// Execution are the flags of what executes runs. drain is how long it may take to stop.
func Execution(f *pflag.FlagSet, o *host.Execution, drain time.Duration) {
	f.StringArrayVar(&o.Workflows, "workflows", nil, "directory of *.json workflow definitions, watched for changes (repeatable)")
	f.StringVar(&o.Packs, "packs", "", "directory of packs, one folder with a pack.json each; their envelope kinds are served, their node types executed, and their prompt templates filled in")
	f.StringArrayVar(&o.RuntimeCapabilities, "runtime-capability", nil, "id of what this host's runtime provides and a node of a pack may require (repeatable)")
	f.DurationVar(&o.Lease, "lease", o.Lease, "lease of a dispatcher: others take over its runs after that long without a renewal")
	f.DurationVar(&o.DrainTimeout, "drain-timeout", drain, "on SIGTERM, how long to wait for running calls before releasing their runs; a second signal exits immediately")
	f.IntVar(&o.MaxRuns, "max-runs", o.MaxRuns, "runs that a dispatcher executes at a time, without those that sleep or wait for an answer; one eighth more, at least 1, is reserved for tenants below their share")
	RunLimits(f, &o.RunLimits)
	f.IntVar(&o.MaxHandedOut, "max-handed-out", o.MaxHandedOut, "runs that all dispatchers together hold at a time, those included that one has fetched and not begun; the same for all of them")
	f.DurationVar(&o.MaxQueueWait, "max-queue-wait", o.MaxQueueWait, "how long runs may wait for a free place of --max-runs before a dispatcher takes no further ones (503); 0: it takes all")
	f.StringVar(&o.TenantLimits, "tenant-limits", "", "JSON file of tenants' weights, priorities, concurrency and rate limits, read again when it changes; empty: all tenants alike, without limits")
	modelFlags(f, &o.Models)
	prompts(f, &o.Prompts)
	toolFlags(f, &o.Tools)
}

// RunLimits are the flags of the limits on a run.
func RunLimits(f *pflag.FlagSet, o *runlimits.Limits) {
	f.IntVar(&o.MaxNodeExecutions, "max-node-executions", o.MaxNodeExecutions, "node executions of a run, retries included; runs keep the limit they were created with")
	f.DurationVar(&o.MaxRunDuration, "max-run-duration", o.MaxRunDuration, "time a run may take, without pauses, waits for an answer and waits of core.delay; runs keep the limit they were created with")
}

func modelFlags(f *pflag.FlagSet, o *models.Options) {
	f.StringArrayVar(&o.ProviderFlags, "provider", nil,
		"openai, anthropic or gemini, which is there by itself when its key is; or ID=URL of an OpenAI-compatible server (repeatable); the key is read from WAYBILL_PROVIDER_ID_KEY, or from the file that WAYBILL_PROVIDER_ID_KEY_FILE names")
	f.StringVar(&o.DefaultModel, "default-model", "", "PROVIDER/MODEL for nodes that name none; empty: one of the first vendor whose key is there, else sample/sample-1")
	f.StringVar(&o.CredentialsDir, "credentials", "", "directory of tenants' own keys, one a file: TENANT/PROVIDER/REF; a run names its key by configurable.ai.credentialRef")
	f.StringVar(&o.PoliciesFile, "provider-policies", "", "JSON file of who may ask which models of which providers, and with whose keys; empty: everybody may ask all")
	f.StringVar(&o.SettingsFile, "provider-settings", "", "JSON file with time limits, concurrent calls and requests and tokens per minute of each provider; empty uses the defaults")
	f.StringVar(&o.CatalogueFile, "models", "", "JSON file of models, rules and prices that is laid over the built-in model catalogue")
	f.StringVar(&o.UnknownModels, "unknown-models", o.UnknownModels, "refuse or trust: whether a node's requirements are met by a model of which the catalogue does not say so")
	f.StringVar(&o.Directive, "reasoning-directive", o.Directive, "mandatory, advisory or off: how strongly models are asked to write their reasoning into an answer that has a place for it")
	f.StringArrayVar(&o.FallbackHidden, "hide-fallback", nil, "tenant whose runs do not tell which model was asked instead of another (repeatable; * is everybody)")
	f.StringVar(&o.RefusalText, "refusal-text", o.RefusalText, "redacted or none: whether a run records the words in which a model refuses, without secrets and without words of the prompt")
}

func prompts(f *pflag.FlagSet, o *packs.PromptOptions) {
	f.StringVar(&o.Dir, "prompts", "", "directory of prompt templates, one *.json a file; packs may bring further ones")
	f.StringVar(&o.Observability, "prompt-observability", o.Observability,
		"off, hashed or full: whether prompt.composed events are recorded, and whether they hold the texts or their hashes only")
}

func toolFlags(f *pflag.FlagSet, o *tools.Options) {
	f.StringArrayVar(&o.MCPServers, "mcp-server", nil,
		"ID=URL of an MCP server (streamable HTTP), or ID=stdio:COMMAND ARGS (repeatable); its bearer token is read from WAYBILL_MCP_ID_TOKEN, variables of a command from WAYBILL_MCP_ID_ENV_NAME, or WAYBILL_MCP_ID_SECRET_NAME if they are secret")
	f.StringArrayVar(&o.Idempotent, "idempotent-tool", nil,
		"SERVER/TOOL of an MCP tool whose calls may be sent twice (repeatable); a call whose outcome is unknown after a crash is then sent again instead of failing its node")
	f.StringArrayVar(&o.A2AAgents, "a2a-agent", nil, "ID=URL of an A2A agent (repeatable); its bearer token is read from WAYBILL_A2A_ID_TOKEN")
}
