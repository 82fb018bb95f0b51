package accept

import (
	"encoding/json"
	"slices"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
)

// The first event of an envelope identifies the envelope, so that the outcome can be
// derived from the log alone. causationId does not contain type and envelopeId
// (OpenWOP envelope contract §9).

// recordTypes are the event types that can be an envelope's first.
func recordTypes() []wire.EventType {
	return []wire.EventType{wire.EventClarificationRequested, wire.EventLogAppended, wire.EventArtifactCreated}
}

// recordedEnvelope is the envelope in a log.appended or clarification.requested event.
type recordedEnvelope struct {
	EnvelopeType string          `json:"envelopeType"`
	EnvelopeID   string          `json:"envelopeId"`
	Outcome      Status          `json:"outcome"`
	Payload      json.RawMessage `json:"payload"`
}

// recordedJSON renders the envelope as a recordedEnvelope. The outcome member
// distinguishes it from a warning about a discarded envelope.
func (e *execution) recordedJSON() []byte {
	var w wire.ObjectWriter
	w.String("envelopeType", e.env.Type)
	w.String("envelopeId", e.env.EnvelopeID)
	w.String("outcome", string(Accepted))
	e.writeDrift(&w)
	e.writeHints(&w)
	e.writeAnswerPart(&w)
	w.Raw("payload", e.env.Payload)
	return w.Close()
}

// writeDrift adds that the envelope has a lower version than the one that it was validated against
// (OpenWOP envelope contract §4.1), so that readers of the log show what the accept's span says.
func (e *execution) writeDrift(w *wire.ObjectWriter) {
	if !e.attrs.Drift {
		return
	}
	doc, _ := json.Marshal(wire.VersionDrift{Sent: int64(e.env.SchemaVersion), Advertised: int64(e.kind.Version)}) // numbers only
	w.Raw("schemaVersionDrift", doc)
}

// writeHints adds how the envelope is to be shown (OpenWOP envelope contract §13).
func (e *execution) writeHints(w *wire.ObjectWriter) {
	w.NonEmpty("label", e.meta.Label)
	if len(e.meta.Rendering) > 0 {
		w.Raw("rendering", e.meta.Rendering)
	}
}

// writeAnswerPart adds which part of the model's answer the envelope is.
func (e *execution) writeAnswerPart(w *wire.ObjectWriter) {
	if e.req.Answer.Size > 1 {
		doc, _ := json.Marshal(e.req.Answer) // numbers only
		w.Raw("answer", doc)
	}
}

// parseRecorded reads the envelope from an event; ok is false for an event that is
// not the first of an accepted envelope.
func parseRecorded(e wire.Event) (s recordedEnvelope, ok bool) {
	switch e.Type {
	case wire.EventArtifactCreated:
		var a struct {
			ArtifactID, ArtifactType string
			Payload                  json.RawMessage
		}
		if json.Unmarshal(e.Payload, &a) != nil {
			return recordedEnvelope{}, false
		}
		s = recordedEnvelope{EnvelopeType: a.ArtifactType, EnvelopeID: a.ArtifactID, Outcome: Accepted, Payload: a.Payload}
	case wire.EventLogAppended:
		var l struct{ Fields recordedEnvelope }
		if json.Unmarshal(e.Payload, &l) != nil {
			return recordedEnvelope{}, false
		}
		s = l.Fields
	case wire.EventClarificationRequested:
		var c struct{ Envelope recordedEnvelope }
		if json.Unmarshal(e.Payload, &c) != nil {
			return recordedEnvelope{}, false
		}
		s = c.Envelope
	}
	return s, s.Outcome == Accepted && s.EnvelopeType != "" && s.EnvelopeID != "" && len(s.Payload) > 0
}

// recordOf derives the record of an envelope from a frame; nil if the frame has no
// such envelope. First and later answers all derive the outcome here, so they have
// the same bytes.
func recordOf(f *frame.Frame, events []wire.Event, correlationID string) *Record {
	first := slices.IndexFunc(events, func(e wire.Event) bool { return e.CausationID == correlationID })
	if first < 0 {
		return nil
	}
	s, ok := parseRecorded(events[first])
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

// EventsCausedBy returns the events of the accepted envelope with the correlationId;
// none if no such envelope was accepted. Events of refused envelopes with the same id
// are left out.
func EventsCausedBy(events []wire.Event, correlationID string) []wire.Event {
	var caused []wire.Event
	for _, e := range events {
		if e.CausationID != correlationID {
			continue
		}
		if len(caused) == 0 {
			if _, first := parseRecorded(e); !first {
				continue
			}
		}
		caused = append(caused, e)
	}
	return caused
}
