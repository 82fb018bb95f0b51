package accept

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// maxInterruptKey bounds the key of an interrupt (suspend-request.schema.json).
const maxInterruptKey = 256

// route lets the handler of the kind say which events follow (OpenWOP envelope
// contract §10). There is no event type per kind: everything goes into types
// of the catalogue.
func route(_ context.Context, p *passage) (*Refusal, error) {
	var (
		drafts []wire.Draft
		ok     = true
	)
	switch p.env.Type {
	case KindClarificationRequest:
		drafts, ok = p.clarification()
	case KindSchemaRequest:
		drafts = p.logged("debug", "the model asked for the schema of a kind")
	case KindSchemaResponse:
		drafts = p.logged("debug", "the model acknowledged the schema of a kind")
	case KindError:
		drafts = p.logged("error", p.errorMessage())
	case KindSurface:
		// Two ids that held secrets can have become one.
		drafts, ok = p.artifact(), p.surface() == nil
	default:
		drafts = p.artifact()
	}
	if !ok {
		return &Refusal{Status: Invalid, Code: fault.EnvelopeInvalid, Message: "redaction left no payload of this kind"}, nil
	}
	for i := range drafts {
		drafts[i].NodeID = p.facts.NodeID
		drafts[i].CausationID = p.env.CorrelationID
		drafts[i].Trust = p.facts.Trust
	}
	p.drafts = drafts
	return nil, nil
}

// logged is for kinds that nobody waits for. An error envelope is a turn that
// went well: the model said that it could not, and the node does not fail.
func (p *passage) logged(level, message string) []wire.Draft {
	var o object
	o.text("level", level)
	o.text("message", message)
	o.optional("nodeId", p.facts.NodeID)
	o.raw("fields", p.stamp())
	return []wire.Draft{{Type: wire.EventLogAppended, Payload: o.close()}}
}

// errorMessage is the model's own sentence.
func (p *passage) errorMessage() string {
	var e struct {
		Message string `json:"message"`
	}
	if strictjson.Read(p.env.Payload, &e) != nil || e.Message == "" {
		return "the model reported an error"
	}
	return e.Message
}

// artifact carries the whole payload into the log: the log is the only place
// it is kept.
func (p *passage) artifact() []wire.Draft {
	version := p.env.SchemaVersion
	if p.kind.Version != Unlisted {
		version = integer(p.kind.Version) // the one it was judged by
	}
	var o object
	o.text("artifactId", p.env.EnvelopeID)
	o.text("artifactType", p.env.Type)
	o.optional("nodeId", p.facts.NodeID)
	o.text("version", strconv.FormatInt(int64(version), 10))
	if len(p.meta.Rendering) > 0 {
		o.raw("rendering", p.meta.Rendering)
	}
	p.part(&o)
	o.raw("payload", p.env.Payload)
	return []wire.Draft{{Type: wire.EventArtifactCreated, Payload: o.close()}}
}

// question is one question of a clarification.request. Its context stays with
// the recorded envelope: the data of an interrupt has no place for it (OpenWOP
// envelope contract §24, C5).
type question struct {
	ID       string          `json:"id"`
	Question string          `json:"question"`
	Schema   json.RawMessage `json:"schema"`
}

// clarification lifts the questions to an interrupt. ok is false when there are
// none left to ask, which only a secret that equals a member's name can cause.
func (p *passage) clarification() (drafts []wire.Draft, ok bool) {
	var ask struct {
		Questions   []question `json:"questions"`
		ContextType string     `json:"contextType"`
	}
	if strictjson.Read(p.env.Payload, &ask) != nil || len(ask.Questions) == 0 {
		return nil, false
	}
	questions := []byte("[")
	for i, q := range ask.Questions {
		if q.ID == "" || q.Question == "" {
			return nil, false
		}
		if i > 0 {
			questions = append(questions, ',')
		}
		questions = append(questions, q.lifted()...)
	}
	questions = append(questions, ']')

	interrupt := p.interruptID()
	var asked object
	asked.text("nodeId", p.facts.NodeID)
	asked.text("interruptId", interrupt)
	asked.raw("questions", questions)
	asked.raw("envelope", p.stamp())

	var data object
	data.raw("questions", questions)
	data.optional("contextType", ask.ContextType)
	return []wire.Draft{
		{Type: wire.EventClarificationRequested, Payload: asked.close()},
		{Type: wire.EventInterruptRequested, Payload: p.interrupt(interrupt, data.close())},
	}, true
}

// lifted is the question without its context.
func (q question) lifted() []byte {
	var o object
	o.text("id", q.ID)
	o.text("question", q.Question)
	if len(q.Schema) > 0 {
		o.raw("schema", q.Schema)
	}
	return o.close()
}

func (p *passage) interrupt(id string, data []byte) []byte {
	var o object
	o.text("runId", p.req.Run.RunID)
	o.text("nodeId", p.facts.NodeID)
	o.text("interruptId", id)
	o.text("kind", "clarification")
	o.text("key", p.interruptKey())
	o.raw("data", data)
	o.text("requestedAt", wire.FormatTime(p.clock()))
	return o.close()
}

// interruptKey is <runId>:<nodeId>:<count>, so that a second try at the same
// round asks under the same key.
func (p *passage) interruptKey() string {
	count := 0
	if c := p.req.Counters.ClarificationRounds; c != nil {
		count = c.Current
	}
	key := p.req.Run.RunID + ":" + p.facts.NodeID + ":" + strconv.Itoa(count)
	if len(key) <= maxInterruptKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// interruptID derives from run and correlationId, so that every try gives the
// same one.
func (p *passage) interruptID() string {
	sum := sha256.Sum256([]byte(p.req.Run.RunID + "\x00" + p.env.CorrelationID))
	return "int_" + hex.EncodeToString(sum[:12])
}
