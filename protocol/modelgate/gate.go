// Package modelgate decides whether a model has the capabilities that a node requires, and which
// fallback is called otherwise (RFC 0031 §B, OpenWOP envelope contract §16).
//
// A gate never substitutes silently. Its decision is an event of the run, recorded before the node
// starts or fails.
package modelgate

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"waybill.dev/waybill/protocol/wire"
)

// Capability is a model capability. The registry is open: an unknown capability is
// unmet.
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

// Base lists the five capabilities of the large vendors' models.
func Base() []Capability {
	return []Capability{StructuredOutput, DiscriminatorEnum, LongContext, Reasoning, FunctionCalling}
}

// Reserved lists the protocol's capabilities. Another one is a host's own, and its id begins with
// x-host- (OpenWOP envelope contract §16.2).
func Reserved() []Capability {
	return append(Base(), VisionInput, AudioInput, AudioOutput, ImageOutput)
}

// Model identifies a model of a provider.
type Model struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

// Needs is a node's declaration.
type Needs struct {
	Required []Capability `json:"requiredModelCapabilities"`
	// Fallback is called if the active model lacks a capability; nil if none.
	Fallback *Model `json:"fallbackModel"`
}

// maxRequired limits the capabilities a node may require.
const maxRequired = 32

var (
	capability = regexp.MustCompile(`^([a-z][a-z0-9-]*|x-host-[a-z][a-z0-9-]*-[a-z][a-z0-9-]*)$`)
	provider   = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

// Problem is one error in a declaration. Path is a JSON pointer.
type Problem struct{ Path, Message string }

// Check returns the problems of a declaration (OpenWOP envelope contract §16.1).
func (n Needs) Check() []Problem {
	var out []Problem
	if len(n.Required) > maxRequired {
		out = append(out, Problem{"/requiredModelCapabilities", fmt.Sprintf("limit is %d entries", maxRequired)})
	}
	for i, id := range n.Required {
		at := fmt.Sprintf("/requiredModelCapabilities/%d", i)
		switch {
		case !capability.MatchString(id):
			out = append(out, Problem{at, "must match " + capability.String()})
		case slices.Index(n.Required, id) < i:
			out = append(out, Problem{at, "must not be repeated"})
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

// Host describes the host's abilities.
type Host struct {
	// Off: modelCapabilities is not advertised, so declarations are ignored.
	Off bool
	// Substitutes: the host can replace the model of one call.
	Substitutes bool
	// Routes reports whether a model can be called: its provider and a credential are configured,
	// and no
	// policy forbids it.
	Routes func(m Model) bool
	// TrustsUnknown: capabilities not known for a model count as met; otherwise they are unmet.
	TrustsUnknown bool
	// HidesFallback hides the fallback model from readers of the run.
	HidesFallback bool
	// Has reports whether a model has a capability, and whether that is known.
	Has func(m Model, id Capability) (has, known bool)
}

// Route is the gate's decision.
type Route string

// The three routes.
const (
	Dispatch   Route = "dispatch"
	Substitute Route = "substitute"
	Refuse     Route = "refuse"
)

// Outcome is the result of the gate.
type Outcome struct {
	Route Route
	// Asked is the model to call; empty on Refuse.
	Asked Model
	// Missing lists what the active model lacks, in the order of the declaration, regardless of the
	// fallback (OpenWOP envelope contract §24, C14).
	Missing []Capability
	// FallbackAttempted: a fallback was evaluated; for Refuse.
	FallbackAttempted bool
	// FallbackMissing lists what the fallback lacks; for Refuse. Empty although attempted: the
	// fallback
	// cannot be called.
	FallbackMissing []Capability
	// Unknown: some required capabilities are unknown for the active model.
	Unknown bool
	// Hidden: readers do not see the fallback model.
	Hidden bool
	// Catalogue is the digest of the model catalogue; empty without one.
	Catalogue string
}

// Evaluate decides one dispatch, in the order of RFC 0031 §B. The numbers are the rows of OpenWOP
// envelope contract §16.3.
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

// lacking lists what a model lacks, and reports whether any of it is unknown to the host.
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

// substituted and insufficient are closed payloads (run-event-payloads.schema.json).
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

// Withheld replaces both names of a hidden model (OpenWOP envelope contract §16.3).
const Withheld = "[REDACTED]"

// Event returns the event that records the outcome; ok is false on Dispatch. It carries nothing
// from upstream, so it has no trust tag.
func (o Outcome) Event(nodeID string, active Model) (d wire.Draft, ok bool) {
	var payload any
	switch o.Route {
	case Substitute:
		d.Type = wire.EventModelSubstituted
		asked := o.Asked
		if o.Hidden { // both or neither
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
	if err != nil { // strings and a boolean always render
		return d, false
	}
	d.NodeID, d.Payload = nodeID, b
	return d, true
}
