package accept

import (
	"encoding/json"
	"slices"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
)

// The first event an envelope causes says which envelope it was, so that the
// log alone can tell the outcome again: causationId does not carry type and
// envelopeId (OpenWOP envelope contract §9).

// recordTypes are the event types that can be first.
func recordTypes() []wire.EventType {
	return []wire.EventType{wire.EventClarificationRequested, wire.EventLogAppended, wire.EventArtifactCreated}
}

// stamp is what a log.appended or clarification.requested event carries.
type stamp struct {
	EnvelopeType string          `json:"envelopeType"`
	EnvelopeID   string          `json:"envelopeId"`
	Outcome      Status          `json:"outcome"`
	Payload      json.RawMessage `json:"payload"`
}

// stamp renders the envelope's stamp. The outcome tells it from a warning about
// a discarded envelope.
func (p *passage) stamp() []byte {
	var o object
	o.text("envelopeType", p.env.Type)
	o.text("envelopeId", p.env.EnvelopeID)
	o.text("outcome", string(Accepted))
	p.part(&o)
	o.raw("payload", p.env.Payload)
	return o.close()
}

// part notes which part of the model's answer the envelope is.
func (p *passage) part(o *object) {
	if p.req.Answer.Size > 1 {
		doc, _ := json.Marshal(p.req.Answer) // numbers only
		o.raw("answer", doc)
	}
}

// stampOf reads the stamp of an event; ok is false for an event that is not the
// first of an accepted envelope.
func stampOf(e wire.Event) (s stamp, ok bool) {
	switch e.Type {
	case wire.EventArtifactCreated:
		var a struct {
			ArtifactID, ArtifactType string
			Payload                  json.RawMessage
		}
		if json.Unmarshal(e.Payload, &a) != nil {
			return stamp{}, false
		}
		s = stamp{EnvelopeType: a.ArtifactType, EnvelopeID: a.ArtifactID, Outcome: Accepted, Payload: a.Payload}
	case wire.EventLogAppended:
		var l struct{ Fields stamp }
		if json.Unmarshal(e.Payload, &l) != nil {
			return stamp{}, false
		}
		s = l.Fields
	case wire.EventClarificationRequested:
		var c struct{ Envelope stamp }
		if json.Unmarshal(e.Payload, &c) != nil {
			return stamp{}, false
		}
		s = c.Envelope
	}
	return s, s.Outcome == Accepted && s.EnvelopeType != "" && s.EnvelopeID != "" && len(s.Payload) > 0
}

// recordOf tells the outcome of the envelope whose events are a frame's. It is
// the only way an outcome over the log comes about, so the first answer and all
// later ones are the same bytes. It is nil when the frame has no such envelope.
func recordOf(f *frame.Frame, events []wire.Event, correlationID string) *Record {
	first := slices.IndexFunc(events, func(e wire.Event) bool { return e.CausationID == correlationID })
	if first < 0 {
		return nil
	}
	s, ok := stampOf(events[first])
	if !ok {
		return nil
	}
	var caused []wire.Event
	for _, e := range events {
		if e.CausationID == correlationID {
			caused = append(caused, e)
		}
	}
	trust := events[first].ContentTrust.Meet(wire.Trusted) // absent reads as trusted
	doc, err := json.Marshal(NewAcceptance(s.EnvelopeID, trust, caused))
	if err != nil {
		return nil
	}
	return &Record{Type: s.EnvelopeType, Outcome: doc, Payload: s.Payload, Events: caused, Head: f.Head()}
}

// Caused gives the events of a log that an accepted envelope has caused under a
// correlationId; none if no envelope was accepted under it. What refused envelopes
// of the same id have caused is not among them.
func Caused(events []wire.Event, correlationID string) []wire.Event {
	var caused []wire.Event
	for _, e := range events {
		if e.CausationID != correlationID {
			continue
		}
		if len(caused) == 0 {
			if _, first := stampOf(e); !first {
				continue
			}
		}
		caused = append(caused, e)
	}
	return caused
}
