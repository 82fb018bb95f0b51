package accept

import (
	"errors"
	"slices"
	"strconv"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// checkQuestions refuses a clarification.request that could not be answered: a question's schema
// cannot be applied or accepts no value, or two questions have the same id (OpenWOP host contract
// §6.1: the answer must satisfy the schema). Answers are judged by the same compiler.
func (e *execution) checkQuestions() *Refusal {
	var ask struct {
		Questions []question `json:"questions"`
	}
	if e.env.Type != KindClarificationRequest || strictjson.Read(e.env.Payload, &ask) != nil {
		return nil // of another kind, or the host replaced the kind's schema
	}
	r := &Refusal{Status: Invalid, Code: fault.EnvelopeInvalid, Message: "a question could not be answered"}
	asked := map[string]bool{}
	for i, q := range ask.Questions {
		at := "/payload/questions/" + strconv.Itoa(i)
		if asked[q.ID] {
			r.Details = append(r.Details, Detail{
				InstancePath: at + "/id",
				Keyword:      "unique",
				Message:      "another question has this id; every question needs its own",
			})
		}
		asked[q.ID] = true
		if d := q.checkSchema(); d != nil {
			d.InstancePath = at + "/schema" + d.InstancePath
			r.Details = append(r.Details, *d)
		}
	}
	if len(r.Details) == 0 {
		return nil
	}
	return r
}

// checkSchema returns nil if a value can satisfy the question's schema. The paths are below the
// schema.
func (q question) checkSchema() *Detail {
	if len(q.Schema) == 0 {
		return nil
	}
	if _, err := schema.Compile("schema", q.Schema); err != nil {
		d := &Detail{Keyword: "schema", Message: "must be a JSON Schema of draft 2020-12 without outside references"}
		if e, ok := errors.AsType[*schema.Error](err); ok {
			d.InstancePath, d.Message = e.Path, e.Reason
		}
		return d
	}
	if at, found := findContradiction("", q.Schema); found {
		return &Detail{InstancePath: at, Keyword: "schema", Message: "no value satisfies the schema here"}
	}
	if impossible(q.Schema) {
		return &Detail{Keyword: "schema", Message: "no value satisfies the schema"}
	}
	_, problems := projection.Compile(q.Schema, projection.OpenAI)
	i := slices.IndexFunc(problems, func(p projection.Problem) bool { return p.Rule == projection.RuleNothingFits })
	if i < 0 {
		return nil
	}
	return &Detail{InstancePath: problems[i].Path, Keyword: "schema", Message: "no value satisfies the schema here"}
}
