package interrupt

import (
	"encoding/json"
	"reflect"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// Settles reports whether an answer to p also answers r. Two requests with the same key are the
// same question only if kind, accepted answers and approvers match. Otherwise the answer to one
// could pass the other, which may require more or different approvers (OpenWOP host contract
// §6.1, §6.3).
func (p *Pending) Settles(r Request) bool {
	if p.Kind != r.Kind || !strictjson.Same(p.ResumeSchema, r.ResumeSchema) {
		return false
	}
	switch r.Kind {
	case Approval:
		was, ok := conditions(p.Data)
		is, ok2 := conditions(r.Data)
		return ok && ok2 && reflect.DeepEqual(was, is)
	case LowConfidence:
		return true // the observed value triggers the question, it is not part of it
	default:
		return strictjson.Same(p.Data, r.Data)
	}
}

// Denied returns the error of a node that asks a rejected question again; nil if it was not
// rejected.
func (p *Pending) Denied(resume json.RawMessage) *wire.NodeError {
	action, ok := strictjson.String(strictjson.Object(resume)["action"])
	if p.Kind != Approval || ok && Action(action) != Reject {
		return nil
	}
	return rejectionError(p.InterruptID, "rejected")
}

// conditions returns an approval's data without the members that are only displayed.
func conditions(data json.RawMessage) (approvalData, bool) {
	var d approvalData
	if strictjson.Read(data, &d) != nil {
		return d, false
	}
	d.ArtifactID, d.ArtifactType, d.Title, d.Description, d.ArtifactData, d.Audience = "", "", "", "", nil, nil
	return d, true
}
