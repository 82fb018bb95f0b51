package accept

import (
	"context"
	"fmt"
	"slices"

	"waybill.dev/waybill/protocol/a2ui"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
)

// payload validates the payload against the schema of its kind, at the advertised
// version.
func payload(_ context.Context, e *execution) (*Refusal, error) {
	if wrong := e.validatePayload(); len(wrong) > 0 {
		if e.env.Type == KindSurface && slices.ContainsFunc(wrong, isUnknownCatalogue) {
			return e.refuseUnknownCatalogue(), nil
		}
		return &Refusal{
			Status: Invalid, Code: fault.EnvelopeInvalid,
			Message: fmt.Sprintf("the payload does not satisfy the schema of its kind in %d place(s)", len(wrong)),
			Details: detailsOf("/payload", wrong),
		}, nil
	}
	if r := e.checkMedia(); r != nil {
		return r, nil
	}
	if r := e.findEmbedded(); r != nil {
		return r, nil
	}
	if r := e.checkSurface(); r != nil {
		return r, nil
	}
	if r := e.checkQuestions(); r != nil {
		return r, nil
	}
	if e.env.Type == KindSchemaRequest && !e.policy.AnyRequestedKind {
		return e.checkRequestedKind()
	}
	return nil, nil
}

// isUnknownCatalogue reports that a surface needs a component catalogue that this
// host does not have.
func isUnknownCatalogue(v schema.Violation) bool {
	return v.InstancePath == "/catalogVersion" && v.Keyword == "enum"
}

// refuseUnknownCatalogue refuses such a surface as one of an unknown version: the
// rest of it cannot be validated (OpenWOP envelope contract §4.1, §18).
func (e *execution) refuseUnknownCatalogue() *Refusal {
	const message = "this host does not have the catalogue version of the surface"
	return &Refusal{
		Status: Invalid, Code: fault.UnknownSchemaVersion, Message: message,
		Details: []Detail{{
			InstancePath: "/payload/catalogVersion",
			SchemaPath:   "/properties/catalogVersion/enum",
			Keyword:      "enum",
			Message:      message,
		}},
	}
}

// checkSurface refuses a form in which two components have the same id, because their
// answers could not be distinguished, and one whose button leads nowhere.
func (e *execution) checkSurface() *Refusal {
	if e.env.Type != KindSurface {
		return nil
	}
	s, err := a2ui.Parse(e.env.Payload)
	if err != nil {
		return nil // the host replaced the kind's schema
	}
	wrong := s.Ambiguous()
	if len(wrong) == 0 {
		return e.checkActions(s)
	}
	r := &Refusal{Status: Invalid, Code: fault.EnvelopeInvalid, Message: "two components of the surface have the same id"}
	for _, w := range wrong {
		r.Details = append(r.Details, Detail{
			InstancePath: "/payload" + w.Path, SchemaPath: "/$defs/surface", Keyword: "unique", Message: w.Message,
		})
	}
	return r
}

// checkActions refuses a button for a conversation that the run does not have: no one
// could press it (OpenWOP envelope contract §18).
func (e *execution) checkActions(s *a2ui.Surface) *Refusal {
	if !e.req.NoConversation {
		return nil
	}
	r := &Refusal{Status: Invalid, Code: fault.EnvelopeInvalid, Message: "the surface continues a conversation, and this host has none"}
	for i, c := range s.Components {
		if c.Action != nil && c.Action.Target == a2ui.Exchange {
			r.Details = append(r.Details, Detail{
				InstancePath: fmt.Sprintf("/payload/surface/components/%d/action/target", i),
				SchemaPath:   "/$defs/action/properties/target", Keyword: "enum",
				Message: "must be resume: this host has no conversation that exchange could continue",
			})
		}
	}
	if len(r.Details) == 0 {
		return nil
	}
	return r
}

// validatePayload applies the kind's schema. Null members that the schema does not allow count as
// absent.
func (e *execution) validatePayload() (wrong []schema.Violation) {
	if e.kind.Payload == nil {
		return nil
	}
	e.env.Payload, wrong = schema.UnifyNulls(e.env.Payload, func(payload []byte) []schema.Violation {
		return e.kind.Payload.Validate(e.truncateAsset(payload))
	})
	return wrong
}

// checkRequestedKind checks that the kind in a schema.request is advertised
// (OpenWOP envelope contract §3.3).
func (e *execution) checkRequestedKind() (*Refusal, error) {
	var ask struct {
		EnvelopeType string `json:"envelopeType"`
	}
	if err := strictjson.Read(e.env.Payload, &ask); err != nil {
		return nil, fmt.Errorf("decode a valid payload: %w", err)
	}
	if _, ok := e.kinds.Find(ask.EnvelopeType); !ok {
		return e.refuseUnknownKind(ask.EnvelopeType, "schema.request names a kind that this host does not advertise"), nil
	}
	return nil, nil
}
