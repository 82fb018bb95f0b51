package create

import (
	"encoding/json"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/prompt"
)

// Deps are the starter's collaborators.
type Deps struct {
	Storage
	Redaction
	Checks
	Models
	Limits
	Clock func() time.Time
	// Created is called for each run that this process creates; nil disables it.
	Created func(workflowID string)
}

// Storage keeps runs, their definitions and their claims.
type Storage struct {
	Log         runlog.Log
	Claims      kv.Store // X-Dedup: the active run of a scope
	Definitions Definitions
	// Cleartext stores the clear values of masked runs; nil rejects workflows with sensitive
	// values.
	Cleartext CleartextStore
}

// Redaction removes secrets from a record before it is appended.
type Redaction struct {
	Redactor Redactor
	// Secrets is nil if tenants cannot bring keys.
	Secrets Secrets
}

// Checks are the rules that a run is checked by before it is created.
type Checks struct {
	Types node.Source
	// CheckModel returns why a node's model call can never succeed; nil disables the check.
	CheckModel func(typeID string, config json.RawMessage) *wire.NodeError
	// Policy returns why a run may not call the model in its configurable; nil means no rules.
	Policy func(rec *wire.RunRecord, in node.Input) *wire.NodeError
	// Prompts is nil if there are no templates.
	Prompts *prompt.Library
	// NoAIEnvelope rejects types that emit envelopes.
	NoAIEnvelope bool
}

// Models are the providers that a run may name.
type Models struct {
	// Providers are the ids that a run may name. BYOK are those of them that accept a tenant's own
	// key. DefaultProvider is used by runs that name none.
	Providers, BYOK []string
	DefaultProvider string
	// MockProviders are the ids of configurable.mockProvider; empty without test seams.
	MockProviders []string
}

// Limits are the host's limits on a run.
type Limits struct {
	MaxDuration   time.Duration
	MaxExecutions int
	// MaxDepth is the maximum number of ancestors of a run.
	MaxDepth int
}
