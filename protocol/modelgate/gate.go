// Package modelgate decides whether a model can do what a node requires of it, and
// which one is asked if it cannot (OpenWOP envelope contract §16).
//
// A gate never substitutes in silence and never dispatches in hope: what it decided
// is an event of the run, recorded before the node starts or fails.
package modelgate

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"waybill.dev/waybill/protocol/wire"
)

// Capability is what a node may require of a model. The registry is open: one that
// the host does not know is simply unmet.
type Capability = string

// The protocol's capabilities (OpenWOP envelope contract §16.2).
const (
	StructuredOutput  Capability = "structured-output"
	DiscriminatorEnum Capability = "discriminator-enum"
	LongContext       Capability = "long-context"
	Reasoning         Capability = "reasoning"
	FunctionCalling   Capability = "function-calling"
	VisionInput       Capability = "vision-input"
	AudioInput        Capability = "audio-input"
	AudioOutput       Capability = "audio-output"
	ImageOutput       Capability = "image-output"
)

// Base lists the five that a model of the large vendors has.
func Base() []Capability {
	return []Capability{StructuredOutput, DiscriminatorEnum, LongContext, Reasoning, FunctionCalling}
}

// Model is a model of a provider.
type Model struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

// Needs is what a node declares.
type Needs struct {
	Required []Capability `json:"requiredModelCapabilities"`
	// Fallback is asked if the active model lacks something; nil: none.
	Fallback *Model `json:"fallbackModel"`
}

// maxRequired bounds what a node may require.
const maxRequired = 32

var (
	capability = regexp.MustCompile(`^([a-z][a-z0-9-]*|x-host-[a-z][a-z0-9-]*-[a-z][a-z0-9-]*)$`)
	provider   = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

// Problem is one thing that is wrong with a declaration. Path is a JSON pointer.
type Problem struct{ Path, Message string }

// Check finds what is wrong with a declaration (OpenWOP envelope contract §16.1).
func (n Needs) Check() []Problem {
	var out []Problem
	if len(n.Required) > maxRequired {
		out = append(out, Problem{"/requiredModelCapabilities", fmt.Sprintf("at most %d are taken", maxRequired)})
	}
	for i, id := range n.Required {
		at := fmt.Sprintf("/requiredModelCapabilities/%d", i)
		switch {
		case !capability.MatchString(id):
			out = append(out, Problem{at, "must match " + capability.String()})
		case slices.Index(n.Required, id) < i:
			out = append(out, Problem{at, "must not be named twice"})
		}
	}
	if f := n.Fallback; f != nil {
		if !provider.MatchString(f.Provider) {
			out = append(out, Problem{"/fallbackModel/provider", "must match " + provider.String()})
		}
		if f.Model == "" {
			out = append(out, Problem{"/fallbackModel/model", "must not be empty"})
		}
	}
	return out
}

// Host is what the host can do.
type Host struct {
	// Off says that modelCapabilities is not advertised: declarations are opaque then.
	Off bool
	// Substitutes says that the host can swap the model of one call.
	Substitutes bool
	// Routes reports whether a model can be asked for: its provider is there, so is a
	// credential, and no policy forbids it.
	Routes func(m Model) bool
	// TrustsUnknown takes for met what is not known of a model; else it is unmet.
	TrustsUnknown bool
	// HidesFallback withholds which model is asked instead from readers of the run.
	HidesFallback bool
	// Has reports whether a model has a capability, and whether that is known.
	Has func(m Model, id Capability) (has, known bool)
}

// Route is where a dispatch goes.
type Route string

// The three routes.
const (
	Dispatch   Route = "dispatch"
	Substitute Route = "substitute"
	Refuse     Route = "refuse"
)

// Outcome is what the gate decided.
type Outcome struct {
	Route Route
	// Asked is the model that is asked; none on Refuse.
	Asked Model
	// Missing is what the active model lacks, in the order of the declaration,
	// whatever the fallback lacks (OpenWOP envelope contract §24, C14).
	Missing []Capability
	// FallbackAttempted says that a fallback was looked at; for Refuse.
	FallbackAttempted bool
	// FallbackMissing is what the fallback lacks, too; for Refuse. None, though it was attempted: it
	// cannot be asked.
	FallbackMissing []Capability
	// Unknown says that it is not known of the active model whether it has all that is
	// required.
	Unknown bool
	// Hidden says that readers are not told which model is asked instead.
	Hidden bool
	// Catalogue is the digest of what was known of models; empty: nobody keeps one.
	Catalogue string
}

// Evaluate decides one dispatch; the numbers are the rows of the contract's table
// (OpenWOP envelope contract §16.3).
func Evaluate(n Needs, active Model, h Host) Outcome {
	o := Outcome{Route: Refuse}
	o.Missing, o.Unknown = n.lacking(active, h)
	switch {
	case h.Off || len(o.Missing) == 0: // 1, 2
		return Outcome{Route: Dispatch, Asked: active, Unknown: o.Unknown}
	case n.Fallback == nil, !h.Substitutes: // 4, 5
		return o
	case !h.Routes(*n.Fallback): // 6; it counts as attempted (C13)
		o.FallbackAttempted = true
		return o
	}
	if o.FallbackMissing, _ = n.lacking(*n.Fallback, h); len(o.FallbackMissing) > 0 { // 7; there is no second fallback
		o.FallbackAttempted = true
		return o
	}
	o.Route, o.Asked, o.Hidden = Substitute, *n.Fallback, h.HidesFallback // 3
	return o
}

// lacking lists what a model lacks, and reports whether the host does not know of some
// of what is required.
func (n Needs) lacking(m Model, h Host) (missing []Capability, unknown bool) {
	for _, id := range n.Required {
		has, known := h.Has(m, id)
		unknown = unknown || !known
		if !has && (known || !h.TrustsUnknown) && !slices.Contains(missing, id) {
			missing = append(missing, id)
		}
	}
	return missing, unknown
}

// substituted and insufficient are payloads, closed both
// (run-event-payloads.schema.json).
type substituted struct {
	NodeID           string       `json:"nodeId"`
	OriginalProvider string       `json:"originalProvider"`
	OriginalModel    string       `json:"originalModel"`
	FallbackProvider string       `json:"fallbackProvider"`
	FallbackModel    string       `json:"fallbackModel"`
	Missing          []Capability `json:"missingCapabilities"`
}

type insufficient struct {
	NodeID            string       `json:"nodeId"`
	Provider          string       `json:"provider"`
	Model             string       `json:"model"`
	Missing           []Capability `json:"missingCapabilities"`
	FallbackAttempted bool         `json:"fallbackAttempted"`
}

// Withheld stands for both names of a model that readers are not told (OpenWOP
// envelope contract §16.3).
const Withheld = "[REDACTED]"

// Event is what a run records of the outcome; ok is false on Dispatch. It carries
// nothing from upstream, so it has no trust tag.
func (o Outcome) Event(nodeID string, active Model) (d wire.Draft, ok bool) {
	var payload any
	switch o.Route {
	case Substitute:
		d.Type = wire.EventModelSubstituted
		asked := o.Asked
		if o.Hidden { // both or neither, and nothing else
			asked = Model{Withheld, Withheld}
		}
		payload = substituted{nodeID, active.Provider, active.Model, asked.Provider, asked.Model, o.Missing}
	case Refuse:
		d.Type = wire.EventModelInsufficient
		payload = insufficient{nodeID, active.Provider, active.Model, o.Missing, o.FallbackAttempted}
	default:
		return d, false
	}
	b, err := json.Marshal(payload)
	if err != nil { // texts and a boolean always render
		return d, false
	}
	d.NodeID, d.Payload = nodeID, b
	return d, true
}
