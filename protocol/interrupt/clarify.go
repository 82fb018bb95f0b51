package interrupt

import (
	"encoding/json"
	"slices"
	"strconv"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
)

// judgeClarification accepts an answer to each question, in either form of the protocol. It
// resumes with the object form (OpenWOP host contract §6.1). The responder may decline instead.
func (p *Pending) judgeClarification(a Answer) (Decision, error) {
	if _, declined := ReadDeclined(a.Value); declined {
		return p.judgeDeclined(a)
	}
	members := strictjson.Object(a.Value)
	answers, wrong := readAnswers(members["answers"])
	if len(wrong) > 0 {
		return Decision{}, invalid(wrong)
	}
	members["answers"] = strictjson.RenderPlain(answers)
	resume := strictjson.RenderPlain(members)
	if err := p.satisfies(resume); err != nil {
		return Decision{}, err
	}
	var d clarificationData
	if err := p.readData(&d); err != nil {
		return Decision{}, err
	}
	if wrong := d.judge(answers); len(wrong) > 0 {
		return Decision{}, invalid(wrong).Unprocessable()
	}
	return a.advance(resume), nil
}

const answersPath = answerPath + "/answers"

// readAnswers reads {<id>: <value>} or [{id, answer}].
func readAnswers(raw json.RawMessage) (answers map[string]json.RawMessage, wrong []workflow.Problem) {
	if answers = strictjson.Object(raw); answers != nil {
		return answers, nil
	}
	var list []struct {
		ID     string          `json:"id"`
		Answer json.RawMessage `json:"answer"`
	}
	if strictjson.Read(raw, &list) != nil || list == nil {
		return nil, []workflow.Problem{{Path: answersPath, Rule: "type", Message: `want an object that maps question ids to answers, or a list of {"id", "answer"}`}}
	}
	answers = map[string]json.RawMessage{}
	for i, item := range list {
		path := answersPath + "/" + strconv.Itoa(i)
		switch {
		case item.ID == "" || item.Answer == nil:
			wrong = append(wrong, workflow.Problem{Path: path, Rule: workflow.RuleRequired, Message: "want the members id and answer"})
		case answers[item.ID] != nil:
			wrong = append(wrong, workflow.Problem{Path: path + "/id", Rule: workflow.RuleUnique, Message: "the question is already answered; keep one answer"})
		default:
			answers[item.ID] = item.Answer
		}
	}
	return answers, wrong
}

// judge finds unanswered questions, invalid answers and unknown ids. A null is an answer only if
// the question's schema accepts it.
func (d *clarificationData) judge(answers map[string]json.RawMessage) (wrong []workflow.Problem) {
	asked := map[string]bool{}
	for _, q := range d.Questions {
		asked[q.ID] = true
		path := answersPath + "/" + jsonpointer.Escape(q.ID)
		answer, given := answers[q.ID]
		if !given || q.Schema == nil && string(answer) == "null" {
			wrong = append(wrong, workflow.Problem{Path: path, Rule: workflow.RuleRequired, Message: "the question has no answer; every question requires one"})
			continue
		}
		wrong = append(wrong, q.checkShape(path, answer)...)
	}
	var others []string
	for id := range answers {
		if !asked[id] {
			others = append(others, id)
		}
	}
	slices.Sort(others)
	for _, id := range others {
		wrong = append(wrong, workflow.Problem{Path: answersPath + "/" + jsonpointer.Escape(id), Rule: workflow.RuleReference, Message: "no question has this id"})
	}
	return wrong
}

func (q *question) checkShape(path string, answer json.RawMessage) []workflow.Problem {
	if q.Schema == nil {
		return nil
	}
	compiled, err := schema.Compile("schema", q.Schema)
	if err != nil { // it compiled when the question was asked
		return []workflow.Problem{{Path: path, Rule: workflow.RuleSchema, Message: "the question's schema cannot be applied"}}
	}
	return violations(path, compiled.Validate(answer))
}
