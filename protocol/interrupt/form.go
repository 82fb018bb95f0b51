package interrupt

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/a2ui"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
)

// customData is the data of a custom interrupt. If customKind is that of A2UI surfaces, it is a
// form: the payload is the surface, and the submitted fields are the answer (OpenWOP envelope
// contract §18, on submit).
type customData struct {
	CustomKind string          `json:"customKind"`
	Payload    json.RawMessage `json:"payload,omitempty"`
}

// form returns the data of a form request.
func (r Request) form() (d customData, ok bool) {
	if r.Kind != Custom || strictjson.Read(r.Data, &d) != nil {
		return d, false
	}
	return d, d.CustomKind == a2ui.Kind
}

// IsForm reports whether the answer is a submitted form.
func (r Request) IsForm() bool {
	_, ok := r.form()
	return ok
}

// readCustom validates the data of a custom interrupt. A surface, if present, must be displayable.
func readCustom(_ Origin, below string, doc json.RawMessage, _ int64) (json.RawMessage, []workflow.Problem) {
	wrong := checkShape(string(Custom), below, doc)
	if len(wrong) > 0 {
		return nil, wrong
	}
	if d, ok := (Request{Kind: Custom, Data: doc}).form(); ok && d.Payload != nil {
		wrong = surfaceProblems(below+"/payload", d.Payload)
	}
	return doc, wrong
}

func surfaceProblems(path string, payload json.RawMessage) []workflow.Problem {
	_, wrong := a2ui.Read(payload)
	return surfaceRules(path, wrong)
}

// RuleSurface is the rule of a Problem with a surface or a submitted form.
const RuleSurface = "surface"

func surfaceRules(path string, wrong []a2ui.Problem) []workflow.Problem {
	var out []workflow.Problem
	for _, w := range wrong {
		out = append(out, workflow.Problem{Path: path + w.Path, Rule: RuleSurface, Message: w.Message})
	}
	return out
}

// checkForm validates an answer against the form's fields; nil if the request is not a form.
func (p *Pending) checkForm(value json.RawMessage) []workflow.Problem {
	d, ok := p.form()
	if !ok {
		return nil
	}
	s, wrong := a2ui.Read(d.Payload)
	if len(wrong) == 0 {
		wrong = s.CheckSubmit(value)
	}
	return surfaceRules(answerPath, wrong)
}
