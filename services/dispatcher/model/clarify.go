package model

import (
	"encoding/json"
	"slices"

	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node/media"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// clarificationMessages renders earlier clarification questions of the model and their answers as
// messages. The envelopes that the model sent with its questions come first, and are not requested
// again.
func clarificationMessages(answered []Answered) []provider.Message {
	var out []provider.Message
	for _, a := range answered {
		var asked struct {
			Questions json.RawMessage `json:"questions"`
		}
		_ = json.Unmarshal(a.Question, &asked) // recorded by the accept pipeline
		question := strictjson.RenderPlain(map[string]any{
			"type":    wire.KindClarificationRequest,
			"payload": map[string]json.RawMessage{"questions": asked.Questions},
		})
		said := string(question)
		if len(a.Others) > 0 {
			said = string(strictjson.RenderPlain(append(renderOthers(a.Others), question)))
		}
		out = append(out,
			provider.Message{Role: "assistant", Content: wire.AppendString(nil, said)},
			userMessage(answerText(a)))
	}
	return out
}

// renderOthers renders recorded envelopes as the model wrote them, with descriptions in place of
// assets.
func renderOthers(list []Recorded) []json.RawMessage {
	var out []json.RawMessage
	for _, r := range list {
		out = append(out, strictjson.RenderPlain(map[string]any{"type": r.Kind, "payload": media.Describe(r.Payload)}))
	}
	return out
}

// answerText is the message with the answers to the model's questions, or that there are none.
func answerText(a Answered) string {
	reason, declined := interrupt.ReadDeclined(a.Answer)
	kept := ""
	if len(a.Others) > 0 {
		kept = " The other envelopes of that answer are accepted: do not send them again."
	}
	switch {
	case !declined:
		return "The answers to your questions, by their ids. Go on with the task." + kept + "\n" + string(a.Answer)
	case reason == "":
		return "The person declined to answer your questions. Go on with the task without the answers." + kept
	}
	return "The person declined to answer your questions, for the reason below. Go on with the task without the answers." +
		kept + "\n" + reason
}

// sentWithQuestions returns the accepted envelopes of the answers that asked the node's questions.
func (t *Task) sentWithQuestions() []acceptedEnvelope {
	var out []acceptedEnvelope
	for _, a := range t.Answered {
		for _, r := range a.Others {
			if !sideChannel(r.Kind) {
				out = append(out, r.accepted())
			}
		}
	}
	return out
}

// Lists reports whether the envelope of a sequence is listed at a question.
func (t *Task) Lists(sequence int) bool {
	return slices.ContainsFunc(t.Answered, func(a Answered) bool {
		return slices.ContainsFunc(a.Others, func(r Recorded) bool { return r.Sequence == sequence })
	})
}
