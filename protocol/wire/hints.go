package wire

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/strictjson"
)

// Hints are the members of an envelope's meta that advise how to show it (OpenWOP envelope contract
// §13). They never change how an envelope is validated or routed.
type Hints struct {
	// Label names the envelope on dashboards.
	Label string `json:"label,omitempty"`
	// Rendering is the RenderingHint; nil for none.
	Rendering json.RawMessage `json:"rendering,omitempty"`
}

// HintsOf returns the hints in the event that records an envelope.
func HintsOf(e Event) Hints {
	var p struct {
		Hints
		Fields   Hints `json:"fields"`
		Envelope Hints `json:"envelope"`
	}
	_ = strictjson.Read(e.Payload, &p) // an unreadable payload has no hints
	switch e.Type {
	case EventArtifactCreated:
		return p.Hints
	case EventLogAppended:
		return p.Fields
	case EventClarificationRequested:
		return p.Envelope
	default:
		return Hints{}
	}
}

// OrNil returns nil for no hints.
func (h Hints) OrNil() *Hints {
	if h.Label == "" && h.Rendering == nil {
		return nil
	}
	return &h
}
