package interrupt

import (
	"encoding/json"
	"reflect"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// Settles reports whether an answer to p is one to r, too: a question that has the same key
// is the same question if it is of the same kind, takes the same answers, and takes them from
// the same people. Else somebody's answer to the one would pass the other, which may ask for
// more of them, or for others (OpenWOP host contract §6.1, §6.3).
func (p *Pending) Settles(r Request) bool {
	if p.Kind != r.Kind || !strictjson.Same(p.ResumeSchema, r.ResumeSchema) {
		return false
	}
	switch r.Kind {
	case Approval:
		was, ok := terms(p.Data)
		is, ok2 := terms(r.Data)
		return ok && ok2 && reflect.DeepEqual(was, is)
	case LowConfidence:
		return true // what was observed is the occasion, not the question
	default:
		return strictjson.Same(p.Data, r.Data)
	}
}

// Denied is why a node fails that asks again what was rejected; nil: it was not.
func (p *Pending) Denied(resume json.RawMessage) *wire.NodeError {
	action, ok := strictjson.String(strictjson.Object(resume)["action"])
	if p.Kind != Approval || ok && Action(action) != Reject {
		return nil
	}
	return rejection(p.InterruptID, "rejected")
}

// terms are what an approval asks of whom, without what it shows them.
func terms(data json.RawMessage) (approvalData, bool) {
	var d approvalData
	if strictjson.Read(data, &d) != nil {
		return d, false
	}
	d.ArtifactID, d.ArtifactType, d.Title, d.Description, d.ArtifactData, d.Audience = "", "", "", "", nil, nil
	return d, true
}
