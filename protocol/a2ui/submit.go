package a2ui

import (
	"encoding/json"
	"fmt"

	"waybill.dev/waybill/protocol/schema"
)

// Submit validates submitted values against the surface and then against the interrupt's
// resumeSchema (nil for none), and returns the resume value (OpenWOP envelope contract §18, on
// submit). The schema is applied only to values that fit the surface.
//
// The error means that the schema is unusable, so no value can be submitted.
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
