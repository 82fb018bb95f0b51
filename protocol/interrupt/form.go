package interrupt

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/a2ui"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
)

// customData is the data of a custom interrupt. One whose customKind is that of A2UI
// surfaces is a form: its payload is the surface, and what is filled into that is the
// answer (OpenWOP envelope contract §18, on submit).
type customData struct {
	CustomKind string          `json:"customKind"`
	Payload    json.RawMessage `json:"payload,omitempty"`
}

// form is the data of a request that is a form.
func (r Request) form() (d customData, ok bool) {
	if r.Kind != Custom || strictjson.Read(r.Data, &d) != nil {
		return d, false
	}
	return d, d.CustomKind == a2ui.Kind
}

// IsForm reports whether somebody fills a form in to answer.
func (r Request) IsForm() bool {
	_, ok := r.form()
	return ok
}

// readCustom takes the data of a custom interrupt. A surface that is there must be one
// that can be shown.
func readCustom(_ Place, below string, doc json.RawMessage, _ int64) (json.RawMessage, []workflow.Problem) {
	wrong := misfits(string(Custom), below, doc)
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
	return surfaced(path, wrong)
}

// RuleSurface is the rule of a Problem with a surface, or with what was filled into one.
const RuleSurface = "surface"

func surfaced(path string, wrong []a2ui.Problem) []workflow.Problem {
	var out []workflow.Problem
	for _, w := range wrong {
		out = append(out, workflow.Problem{Path: path + w.Path, Rule: RuleSurface, Message: w.Message})
	}
	return out
}

// unfilled finds what a form's fields do not take of an answer; nil where nothing was to be
// filled in.
func (p *Pending) unfilled(value json.RawMessage) []workflow.Problem {
	d, ok := p.form()
	if !ok {
		return nil
	}
	s, wrong := a2ui.Read(d.Payload)
	if len(wrong) == 0 {
		wrong = s.CheckSubmit(value)
	}
	return surfaced(answered, wrong)
}
