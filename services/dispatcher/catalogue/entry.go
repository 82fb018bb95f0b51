package catalogue

import (
	"slices"
	"time"

	"waybill.dev/waybill/protocol/modelgate"
)

// LongContext is how many tokens a model with long-context takes (OpenWOP envelope
// contract §16.2).
const LongContext = 200_000

// Provider is what the catalogue says about the provider of the models it lists.
type Provider struct {
	Name string `json:"name"`
	// Source lists the public pages that the figures are to be found on.
	Source []string `json:"source,omitempty"`
	// Checked is the day on which they were last looked up.
	Checked string `json:"checked,omitempty"`
	Note    string `json:"note,omitempty"`
}

// Structured is how a model is held to a schema.
type Structured string

// The ways; an empty one is unknown.
const (
	// StructuredFormat: the answer itself is held to the schema.
	StructuredFormat Structured = "format"
	// StructuredTool: only the arguments of a tool are, that the model is made to call.
	StructuredTool Structured = "tool"
	// StructuredNone: nothing is.
	StructuredNone Structured = "none"
)

// Traits are what is said of a model, or of all that a rule speaks for.
type Traits struct {
	// Capabilities are those that the model has.
	Capabilities []modelgate.Capability `json:"capabilities,omitempty"`
	// ContextTokens is the size of the context window, OutputTokens the longest
	// answer; 0: unknown.
	ContextTokens    int        `json:"contextTokens,omitempty"`
	OutputTokens     int        `json:"outputTokens,omitempty"`
	StructuredOutput Structured `json:"structuredOutput,omitempty"`
	// Sampling is false for a model that refuses or ignores temperature and topP
	// unless more is said in the request; nil: unknown.
	Sampling *bool `json:"sampling,omitempty"`
	// Prices is nil if they are unknown.
	Prices *Prices `json:"prices,omitempty"`
	Note   string  `json:"note,omitempty"`
}

// Entry is a model.
type Entry struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	// Aliases are other names of it, Snapshots those of its dated versions, as far
	// as they are no different in what is said here.
	Aliases   []string `json:"aliases,omitempty"`
	Snapshots []string `json:"snapshots,omitempty"`
	Traits
	// Unsure are capabilities of which it is not known whether the model has them.
	Unsure []modelgate.Capability `json:"unsure,omitempty"`
	// Retires is the day on which the vendor takes the model away; empty: none is
	// known.
	Retires string `json:"retires,omitempty"`
	// Rule is the pattern of the rule that speaks for the model, which is listed
	// nowhere itself; empty: the model is listed.
	Rule string `json:"rule,omitempty"`
}

// Rule speaks for models that are not listed. What it does not say is unknown.
type Rule struct {
	// Match is a pattern over the part of the model's name after the last slash, in
	// lower case; * stands for any text.
	Match string `json:"match"`
	// Provider, unless empty, binds the rule to one provider, listed or not. A rule
	// without it speaks for every provider that the catalogue does not list.
	Provider string `json:"provider,omitempty"`
	Traits
	// Lacks are capabilities that the models surely do not have.
	Lacks []modelgate.Capability `json:"lacks,omitempty"`
}

// Name is the entry's provider and model, as people write them.
func (e Entry) Name() string { return e.Provider + "/" + e.Model }

// names are all names the model goes by at its provider.
func (e Entry) names() []string {
	return slices.Concat([]string{e.Model}, e.Aliases, e.Snapshots)
}

// Has reports whether the model has a capability, and whether that is known. What
// the host has no word for is surely unmet.
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

// At is the entry with the prices of a day, those of UTC. An entry without prices
// comes out if none are known for it.
func (e Entry) At(day time.Time) Entry {
	date := day.UTC().Format(time.DateOnly)
	for e.Prices != nil && e.Prices.Until != "" && e.Prices.Until < date {
		e.Prices = e.Prices.Then
	}
	return e
}

// entry is what the rule says of a model.
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

// Capabilities lists the protocol's, in the order that entries have them in.
func Capabilities() []modelgate.Capability {
	return append(modelgate.Base(), modelgate.VisionInput, modelgate.AudioInput, modelgate.AudioOutput, modelgate.ImageOutput)
}
