package catalogue

import (
	"slices"
	"time"

	"waybill.dev/waybill/protocol/modelgate"
)

// LongContext is the minimum context window, in tokens, of a model with long-context (OpenWOP
// envelope contract §16.2).
const LongContext = 200_000

// Provider describes the provider of listed models.
type Provider struct {
	Name string `json:"name"`
	// Source lists public pages with the figures.
	Source []string `json:"source,omitempty"`
	// Checked is the day of the last check.
	Checked string `json:"checked,omitempty"`
	Note    string `json:"note,omitempty"`
}

// Structured is how a vendor enforces a schema for a model.
type Structured string

// The ways; empty means unknown.
const (
	// StructuredFormat enforces the schema on the answer.
	StructuredFormat Structured = "format"
	// StructuredTool enforces it on the arguments of a forced tool call only.
	StructuredTool Structured = "tool"
	// StructuredNone does not enforce it.
	StructuredNone Structured = "none"
)

// Traits describe a model, or all models of a rule.
type Traits struct {
	// Capabilities are the capabilities that the model has.
	Capabilities []modelgate.Capability `json:"capabilities,omitempty"`
	// ContextTokens is the size of the context window, OutputTokens the longest answer; 0 means
	// unknown.
	ContextTokens    int        `json:"contextTokens,omitempty"`
	OutputTokens     int        `json:"outputTokens,omitempty"`
	StructuredOutput Structured `json:"structuredOutput,omitempty"`
	// SchemaDialect names the dialect that schemas are projected to: a vendor of internal/projection,
	// or as-written. Empty uses the provider's.
	SchemaDialect string `json:"schemaDialect,omitempty"`
	// Sampling is false for a model that rejects or ignores temperature and topP by default; nil
	// means unknown.
	Sampling *bool `json:"sampling,omitempty"`
	// Prices is nil if unknown.
	Prices *Prices `json:"prices,omitempty"`
	Note   string  `json:"note,omitempty"`
}

// Entry is a model.
type Entry struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	// Aliases are other names, Snapshots names of dated versions with the same traits.
	Aliases   []string `json:"aliases,omitempty"`
	Snapshots []string `json:"snapshots,omitempty"`
	Traits
	// Unsure are capabilities that may or may not be present.
	Unsure []modelgate.Capability `json:"unsure,omitempty"`
	// Retires is the day on which the vendor removes the model; empty if unknown.
	Retires string `json:"retires,omitempty"`
	// Rule is the pattern of the rule that describes a model that is not listed; empty for a listed
	// model.
	Rule string `json:"rule,omitempty"`
}

// Rule describes models that are not listed. Omitted traits are unknown.
type Rule struct {
	// Match is a pattern for the part of the model's name after the last slash, in lower case; *
	// matches any text.
	Match string `json:"match"`
	// Provider limits the rule to one provider, listed or not. If empty, the rule applies to every
	// provider without listed models.
	Provider string `json:"provider,omitempty"`
	Traits
	// Lacks are capabilities that the models do not have.
	Lacks []modelgate.Capability `json:"lacks,omitempty"`
}

// Name returns PROVIDER/MODEL.
func (e Entry) Name() string { return e.Provider + "/" + e.Model }

// names returns all names of the model at its provider.
func (e Entry) names() []string {
	return slices.Concat([]string{e.Model}, e.Aliases, e.Snapshots)
}

// Has reports whether the model has a capability, and whether that is known. A capability that the
// host does not know is absent.
func (e Entry) Has(id modelgate.Capability) (has, known bool) {
	switch {
	case slices.Contains(e.Capabilities, id):
		return true, true
	case slices.Contains(e.Unsure, id):
		return false, false
	default:
		return false, true
	}
}

// At returns the entry with the prices of a day in UTC, without prices if unknown.
func (e Entry) At(day time.Time) Entry {
	date := day.UTC().Format(time.DateOnly)
	for e.Prices != nil && e.Prices.Until != "" && e.Prices.Until < date {
		e.Prices = e.Prices.Then
	}
	return e
}

// entry returns the rule's description of a model.
func (r Rule) entry(provider, model string) Entry {
	e := Entry{Provider: provider, Model: model, Traits: r.Traits, Rule: r.Match}
	for _, id := range Capabilities() {
		if slices.Contains(r.Capabilities, id) || slices.Contains(r.Lacks, id) ||
			id == modelgate.LongContext && r.ContextTokens > 0 {
			continue
		}
		e.Unsure = append(e.Unsure, id)
	}
	return e
}

// Capabilities lists the protocol's capabilities in the order of entries.
func Capabilities() []modelgate.Capability {
	return modelgate.Reserved()
}
