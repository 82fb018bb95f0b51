package runstate

import (
	"bytes"
	"encoding/json"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// payload is the union of the payload members that the fold reads.
type payload struct {
	NodeID           string          `json:"nodeId"`
	TypeID           string          `json:"typeId"`
	Attempt          int             `json:"attempt"`
	DelayMs          int64           `json:"delayMs"`
	TimeoutMs        int64           `json:"timeoutMs"`
	Outputs          json.RawMessage `json:"outputs"`
	Error            *wire.NodeError `json:"error"`
	LastError        *wire.NodeError `json:"lastError"`
	Name             string          `json:"name"`
	Next             json.RawMessage `json:"next"`
	Provider         string          `json:"provider"`
	Model            string          `json:"model"`
	FallbackProvider string          `json:"fallbackProvider"`
	FallbackModel    string          `json:"fallbackModel"`
	InputTokens      int64           `json:"inputTokens"`
	OutputTokens     int64           `json:"outputTokens"`
	CostUSD          *float64        `json:"costEstimateUsd"`
	ArtifactID       string          `json:"artifactId"`
	ArtifactType     string          `json:"artifactType"`
	Answer           wire.AnswerPart `json:"answer"`
	Label            string          `json:"label"`
	Rendering        json.RawMessage `json:"rendering"`
	InterruptID      string          `json:"interruptId"`
	Envelope         loggedEnvelope  `json:"envelope"`
	Payload          json.RawMessage `json:"payload"`
	Fields           json.RawMessage `json:"fields"`
	Reason           string          `json:"reason"`
	DrainPolicy      string          `json:"drainPolicy"`
	PreviousError    string          `json:"previousError"`
	ChangeID         string          `json:"changeId"`
	Version          int             `json:"version"`
}

// read parses a payload in one pass and skips the members that are not folded. An unreadable
// payload counts as an empty one. Outputs is a slice of doc.
func (p *payload) read(doc []byte) {
	sound := strictjson.Each(doc, func(name, value []byte) {
		if string(name) == "outputs" {
			p.Outputs = value
		} else if member := p.member(string(name)); member != nil {
			strictjson.Set(value, member)
		}
	})
	if !sound { // encoding/json accepts more, such as lone surrogates
		*p = payload{}
		_ = json.Unmarshal(doc, p)
	}
}

// member returns a pointer to the field of a member; nil if there is none.
func (p *payload) member(name string) any {
	switch name {
	case "nodeId":
		return &p.NodeID
	case "typeId":
		return &p.TypeID
	case "attempt":
		return &p.Attempt
	case "delayMs":
		return &p.DelayMs
	case "timeoutMs":
		return &p.TimeoutMs
	case "error":
		return &p.Error
	case "lastError":
		return &p.LastError
	case "name":
		return &p.Name
	case "next":
		return &p.Next
	case "provider":
		return &p.Provider
	case "model":
		return &p.Model
	case "fallbackProvider":
		return &p.FallbackProvider
	case "fallbackModel":
		return &p.FallbackModel
	case "inputTokens":
		return &p.InputTokens
	case "outputTokens":
		return &p.OutputTokens
	case "costEstimateUsd":
		return &p.CostUSD
	case "artifactId":
		return &p.ArtifactID
	case "artifactType":
		return &p.ArtifactType
	case "answer":
		return &p.Answer
	case "label":
		return &p.Label
	case "rendering":
		return &p.Rendering
	case "interruptId":
		return &p.InterruptID
	case "envelope":
		return &p.Envelope
	case "payload":
		return &p.Payload
	case "fields":
		return &p.Fields
	case "reason":
		return &p.Reason
	case "drainPolicy":
		return &p.DrainPolicy
	case "previousError":
		return &p.PreviousError
	case "changeId":
		return &p.ChangeID
	case "version":
		return &p.Version
	default:
		return nil
	}
}

// outputs returns the ports of a completed node, each copied; nil if none.
func (p *payload) outputs() map[string]json.RawMessage {
	ports := map[string]json.RawMessage{}
	if strictjson.Each(p.Outputs, func(name, value []byte) { ports[string(name)] = bytes.Clone(value) }) {
		return ports
	}
	var all map[string]json.RawMessage
	_ = json.Unmarshal(p.Outputs, &all)
	return all
}
