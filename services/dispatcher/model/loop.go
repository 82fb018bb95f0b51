// Package model calls a model until its answer is complete and accepts the answer.
//
// One loop owns every retry of an emission. It calls the model, classifies the stop reason, finds
// the document, and validates it with the accept pipeline or the node's output schema. The next
// attempt gets a larger budget after a truncation and the validator's summary after a wrong answer.
// A refusal is not retried. Transport errors belong to the node's retry policy (OpenWOP envelope
// contract §14).
package model

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"time"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
)

// Config bounds the loop.
type Config struct {
	// MaxAttempts is the number of calls of one emission, the first included.
	MaxAttempts int
	// Multiplier is the growth of the output budget after a truncation.
	Multiplier int
	Defaults   Defaults
	// Timeout limits a call if neither the node nor the provider's settings do.
	Timeout time.Duration
	// Providers are the operator's settings of providers; nil uses the defaults.
	Providers *limit.All
	// Directive is how strongly models are asked to reason; empty means advisory.
	Directive Directive
	// TrustsUnknown dispatches to models whose required capabilities are not known.
	TrustsUnknown bool
	// BYOK are the providers that accept a tenant's own key.
	BYOK []string
	// TenantKeyed are the BYOK providers for which the host has no key.
	TenantKeyed []string
	// HidesFallback reports whether the fallback model is hidden from readers of a tenant's runs;
	// nil hides none.
	HidesFallback func(tenant string) bool
	// RefusesSubstitution rejects a node whose model lacks a capability, even if its type has a fallback
	// model.
	RefusesSubstitution bool
	// WithholdsRefusals omits refusal texts from the log. Otherwise they are recorded without
	// secrets and without words of the prompt.
	WithholdsRefusals bool
	// AssetMemory limits the assets of all prompts, in bytes; 0 means DefaultAssetMemory.
	AssetMemory int64
}

// Deps are the loop's collaborators.
type Deps struct {
	Models Models
	// Catalogue describes models; nil uses the built-in one.
	Catalogue *catalogue.Catalogue
	// Logger logs gate decisions; nil disables it.
	Logger  *slog.Logger
	Schemas Schemas
	// Scrubber returns the scrubber of a run. With registered it fails while the run's secrets are
	// not registered.
	Scrubber func(tenant, runID string, registered bool) Scrubber
	Prompts  Prompts
	// Keys provides tenants' own keys; nil disables them.
	Keys Keys
	// Policies restricts tenants to models; nil allows all.
	Policies *Policies
	// Assets reads the host's assets; nil if it stores none.
	Assets Assets
	Calls
	Clock func() time.Time
}

// Calls limits and counts the calls of models.
type Calls struct {
	// Limiter admits calls; nil admits all.
	Limiter *limit.Limiter
	// Jitter returns a duration in [0, limit); nil uses a random one.
	Jitter func(limit time.Duration) time.Duration
	// OnCall is called after each model call with its duration; nil disables it.
	OnCall func(provider string, took time.Duration)
	// OnRefused is called if a provider had no capacity for a call; nil disables it.
	OnRefused func(provider string)
	// Canned returns the provider that replaces the model's if the run's configurable has a
	// mockProvider; nil without test seams.
	Canned func(spec json.RawMessage) (provider.Provider, error)
}

// Loop executes model nodes. It is safe for concurrent use.
type Loop struct {
	cfg           Config
	deps          Deps
	projections   projections
	outputSchemas outputSchemas
	// requestedSchemas are those of kinds.
	requestedSchemas requestedSchemas
	turnForms        turnForms
	reasonings       reasonings
	configs          configs
	refusedForms     refusedForms
	// assetMemory limits the assets of prompts in memory.
	assetMemory assetMemory
}

// New makes a loop.
func New(cfg Config, d Deps) *Loop {
	if d.Catalogue == nil {
		d.Catalogue = catalogue.Builtin()
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.Jitter == nil {
		d.Jitter = rand.N[time.Duration]
	}
	return &Loop{cfg: cfg, deps: d, assetMemory: newAssetMemory(cfg.AssetMemory)}
}

// Run executes a model node: it settles what the calls have in common, then makes the calls.
func (l *Loop) Run(ctx context.Context, t Task, j Journal) Result {
	cfg, bad := l.configs.parse(t.Input.Config)
	if bad == nil {
		bad = cfg.checkForm()
	}
	if bad == nil {
		bad = cfg.checkPartials()
	}
	if bad != nil {
		return Result{Err: bad}
	}
	b, err := l.readBounds(ctx)
	if err != nil {
		return Result{Interrupted: err, Unsent: true}
	}
	if res, ok := t.resultFromLog(cfg.EnvelopeType, b.maxAttempts); ok { // whichever model and key would be used now
		res.recordTurn(l.chosenTurn(ctx, t, cfg, b.limits))
		return res
	}
	s, bad, err := l.prepare(ctx, t, cfg, b.limits)
	if bad != nil || err != nil {
		return Result{Err: bad, Interrupted: err, Unsent: err != nil}
	}
	defer s.release()
	e := &emission{Loop: l, spec: s, bounds: b, journal: j}
	out := &outbox{nodeID: t.Input.NodeID, trust: s.task.Trust}
	res := e.runAttempts(ctx, out)
	res.recordTurn(s.chosenTurn)
	res.Trust = s.task.Trust
	return res
}

// bounds limit an emission.
type bounds struct {
	limits Limits
	// maxAttempts limits the calls of the emission, the first included.
	maxAttempts int
}

// readBounds returns the host's limits. Each attempt after the first is a schema round.
func (l *Loop) readBounds(ctx context.Context) (bounds, error) {
	limits, err := l.deps.Schemas.Limits(ctx)
	return bounds{limits: limits, maxAttempts: min(l.cfg.MaxAttempts, limits.SchemaRounds+1)}, err
}
