package interrupt

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/strictjson"
)

// UnknownKind is the customKind of an interrupt about a call with an unknown outcome.
const UnknownKind = "waybill.unknown-outcome"

// Choice is a person's decision about a call with an unknown outcome.
type Choice string

// The choices.
const (
	// ChooseRetry sends the call again.
	ChooseRetry Choice = "retry"
	// ChooseFail fails the node.
	ChooseFail Choice = "fail"
	// ChooseResult completes the node with the outputs in the answer.
	ChooseResult Choice = "use-result"
)

// UnknownCall describes the call to the person who decides.
type UnknownCall struct {
	TypeID string `json:"typeId"`
	// Peer is the called service, such as mcp:shop:charge; empty for a model.
	Peer string `json:"peer,omitempty"`
	// IdempotencyKey is the key sent with the call; empty for a model.
	IdempotencyKey string `json:"idempotencyKey,omitempty"`
	// Attempt is the 0-based number of the attempt, Since its start.
	Attempt int    `json:"attempt"`
	Since   string `json:"since"`
}

// The schemas of the answer. Outputs are the node's, by port.
const (
	unknownAnswer = `{"type":"object","required":["choice"],"additionalProperties":false,"properties":{` +
		`"choice":{"enum":["retry","fail"],"description":"retry sends the call again, fail fails the node"},` +
		`"reason":{"type":"string","maxLength":2000}}}`
	unknownAnswerResult = `{"type":"object","required":["choice"],"additionalProperties":false,"properties":{` +
		`"choice":{"enum":["retry","fail","use-result"],"description":"retry sends the call again with the same idempotency key, fail fails the node, use-result completes it with outputs"},` +
		`"outputs":{"type":"object","description":"the ports of the node, such as {\"output\": ...}"},` +
		`"reason":{"type":"string","maxLength":2000}},` +
		`"if":{"properties":{"choice":{"const":"use-result"}}},"then":{"required":["outputs"]},"else":{"properties":{"outputs":false}}}`
)

// Unknown returns the interrupt about a call with an unknown outcome. takesResult allows an answer
// that supplies the node's outputs.
func Unknown(at Origin, call UnknownCall, takesResult bool) Request {
	answer := unknownAnswer
	if takesResult {
		answer = unknownAnswerResult
	}
	return Request{
		Kind: Custom, Key: at.key(), ResumeSchema: json.RawMessage(answer),
		Data: strictjson.RenderPlain(customData{CustomKind: UnknownKind, Payload: strictjson.RenderPlain(call)}),
	}
}

// IsUnknown reports whether the request is about a call with an unknown outcome.
func (r Request) IsUnknown() bool {
	var d customData
	return r.Kind == Custom && strictjson.Read(r.Data, &d) == nil && d.CustomKind == UnknownKind
}

// Chosen is an answer to an interrupt of Unknown.
type Chosen struct {
	Choice  Choice                     `json:"choice"`
	Outputs map[string]json.RawMessage `json:"outputs"`
	Reason  string                     `json:"reason"`
}

// ReadChosen reads an answer that satisfied the schema of its interrupt.
func ReadChosen(resume json.RawMessage) Chosen {
	var c Chosen
	if strictjson.Read(resume, &c) != nil {
		c.Choice = ChooseFail
	}
	return c
}
