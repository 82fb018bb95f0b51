package model

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// clarificationMessages renders earlier clarification questions of the model and their answers as
// messages.
func clarificationMessages(answered []Answered) []provider.Message {
	var out []provider.Message
	for _, a := range answered {
		var asked struct {
			Questions json.RawMessage `json:"questions"`
		}
		_ = json.Unmarshal(a.Question, &asked) // recorded by the accept pipeline
		envelope, err := json.Marshal(map[string]any{
			"type":    wire.KindClarificationRequest,
			"payload": map[string]json.RawMessage{"questions": asked.Questions},
		})
		if err != nil { // unreachable for recorded events
			continue
		}
		out = append(out,
			provider.Message{Role: "assistant", Content: wire.AppendString(nil, string(envelope))},
			userMessage(answerText(a.Answer)))
	}
	return out
}

// answerText is the message with the answers to the model's questions, or that there are none.
func answerText(resume json.RawMessage) string {
	reason, declined := interrupt.ReadDeclined(resume)
	switch {
	case !declined:
		return "The answers to your questions, by their ids. Go on with the task.\n" + string(resume)
	case reason == "":
		return "The person declined to answer your questions. Go on with the task without the answers."
	}
	return "The person declined to answer your questions, for the reason below. Go on with the task without the answers.\n" + reason
}
