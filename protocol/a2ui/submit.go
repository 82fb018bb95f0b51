package a2ui

import (
	"encoding/json"
	"fmt"

	"waybill.dev/waybill/protocol/schema"
)

// Submit holds submitted values against the surface and then against the
// interrupt's resumeSchema, nil for none, and gives what the interrupt resumes with
// (OpenWOP envelope contract §18, on submit). The schema is asked only about values
// that fit the surface: what a reader could not have filled in is no matter of it.
//
// The error says that the schema is unusable: nobody can submit then.
func (s *Surface) Submit(values, resumeSchema []byte) (resume json.RawMessage, wrong []Problem, err error) {
	if wrong := s.CheckSubmit(values); len(wrong) > 0 {
		return nil, wrong, nil
	}
	if len(resumeSchema) > 0 {
		compiled, err := schema.Compile("resumeSchema", resumeSchema)
		if err != nil {
			return nil, nil, fmt.Errorf("resume schema: %w", err)
		}
		for _, v := range compiled.Validate(values) {
			wrong = append(wrong, Problem{Path: v.InstancePath, Message: v.Message})
		}
		if len(wrong) > 0 {
			return nil, wrong, nil
		}
	}
	return json.RawMessage(values), nil, nil
}
