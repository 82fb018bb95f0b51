package interrupt

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/protocol/workflow"
)

// ModelAnswerSchema is the resumeSchema of a model's questions: the answers, or that the responder
// declines to answer, which is an extension of this host.
const ModelAnswerSchema = `{"type":"object","anyOf":[{"required":["answers"],"properties":{"declined":{"const":false}}},` +
	`{"required":["declined"],"properties":{"answers":false,"declined":{"const":true},"reason":{"type":"string","maxLength":2000}}}]}`

// Declinable reports whether the request is a model's questions, which can be declined.
func (r Request) Declinable() bool {
	return r.Kind == Clarification && strictjson.Same(r.ResumeSchema, json.RawMessage(ModelAnswerSchema))
}

// reasonDeclined is the reason of a node that failed because an answer was declined.
const reasonDeclined = "declined"

// declination is an answer that declines a clarification.
type declination struct {
	Declined bool   `json:"declined"`
	Reason   string `json:"reason"`
}

// ReadDeclined reads a resume value. ok is false if it does not decline.
func ReadDeclined(resume json.RawMessage) (reason string, ok bool) {
	var d declination
	if strictjson.Read(resume, &d) != nil || !d.Declined {
		return "", false
	}
	return d.Reason, true
}

// judgeDeclined accepts that the responder declines to answer a model's questions. Without a policy
// the question is one of a gate, which has no other way to go on.
func (p *Pending) judgeDeclined(a Answer) (Decision, error) {
	if a.OnDecline == "" {
		return Decision{}, invalid([]workflow.Problem{{
			Path: answerPath + "/declined", Rule: workflow.RuleReference,
			Message: "only the questions of a model can be declined; answer the gate's, or cancel the run",
		}})
	}
	if err := p.satisfiesAny(a.Value); err != nil {
		return Decision{}, err
	}
	d := a.advance(a.Value)
	d.Outcome = Declined
	if a.OnDecline == workflow.DeclineFail {
		d.Failure = &wire.NodeError{
			Code:    string(fault.InterruptRejected),
			Message: "a person declined to answer the model's questions",
			Details: map[string]any{"interruptId": p.InterruptID, "reason": reasonDeclined},
		}
	}
	return d, nil
}

// satisfiesAny is satisfies for a model's question. One that was asked by an earlier version has no
// resumeSchema.
func (p *Pending) satisfiesAny(value json.RawMessage) error {
	asked := *p
	if asked.ResumeSchema == nil {
		asked.ResumeSchema = json.RawMessage(ModelAnswerSchema)
	}
	return asked.satisfies(value)
}
