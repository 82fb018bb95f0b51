package interrupt

import (
	"encoding/json"
	"strconv"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// Filler replaces the placeholders of what a person reads.
type Filler interface {
	Text(path, text string) (string, *wire.NodeError)
	JSON(path string, doc json.RawMessage) (json.RawMessage, *wire.NodeError)
}

// Fill returns the request, whose data is at a path, with its placeholders replaced: in the title, the description and the artifact of
// an approval, and in the questions of a clarification. Forms and the data of other kinds belong to the
// programs that read them.
func (r Request) Fill(at string, with Filler) (Request, *wire.NodeError) {
	var bad *wire.NodeError
	text := func(path string, s *string) {
		if bad == nil {
			*s, bad = with.Text(at+path, *s)
		}
		if bad == nil && *s == "" && path != "/description" {
			bad = &wire.NodeError{
				Code:    string(fault.ValidationError),
				Message: at + path + ": is empty, because its placeholders have no value; add text to it, or give them one",
			}
		}
	}
	switch r.Kind {
	case Approval:
		var d approvalData
		if strictjson.Read(r.Data, &d) != nil {
			return r, nil // CheckData reports it
		}
		text("/title", &d.Title)
		text("/description", &d.Description)
		if bad == nil && len(d.ArtifactData) > 0 {
			d.ArtifactData, bad = with.JSON(at+"/artifactData", d.ArtifactData)
		}
		r.Data = strictjson.RenderPlain(d)
	case Clarification:
		var d clarificationData
		if strictjson.Read(r.Data, &d) != nil {
			return r, nil // CheckData reports it
		}
		for i := range d.Questions {
			text("/questions/"+strconv.Itoa(i)+"/question", &d.Questions[i].Question)
		}
		r.Data = strictjson.RenderPlain(d)
	case ExternalEvent, Custom, LowConfidence:
	}
	return r, bad
}
