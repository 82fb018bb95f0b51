package accept

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/interrupt"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// maxInterruptKey bounds the key of an interrupt (suspend-request.schema.json).
const maxInterruptKey = 256

// route drafts the events of the envelope, by kind (OpenWOP envelope contract §10).
// Kinds have no event types of their own: the events are of the catalogue's types.
func route(_ context.Context, e *execution) (*Refusal, error) {
	var (
		drafts []wire.Draft
		ok     = true
	)
	switch e.env.Type {
	case KindClarificationRequest:
		drafts, ok = e.clarificationDrafts()
	case KindSchemaRequest:
		drafts = e.logDraft("debug", "the model asked for the schema of a kind")
	case KindSchemaResponse:
		drafts = e.logDraft("debug", "the model acknowledged the schema of a kind")
	case KindError:
		drafts = e.logDraft("error", e.errorMessage())
	case KindSurface:
		// Redaction can make two ids equal.
		drafts, ok = e.artifactDraft(), e.checkSurface() == nil
	default:
		drafts = e.artifactDraft()
	}
	if !ok {
		return &Refusal{Status: Invalid, Code: fault.EnvelopeInvalid, Message: "redaction left no payload of this kind"}, nil
	}
	for i := range drafts {
		drafts[i].NodeID = e.attrs.NodeID
		drafts[i].CausationID = e.env.CorrelationID
		drafts[i].Trust = e.attrs.Trust
	}
	e.drafts = drafts
	return nil, nil
}

// logDraft is for kinds without a consumer. An error envelope does not fail the node:
// the model answered correctly that it cannot do the task.
func (e *execution) logDraft(level, message string) []wire.Draft {
	var w wire.ObjectWriter
	w.String("level", level)
	w.String("message", message)
	w.NonEmpty("nodeId", e.attrs.NodeID)
	w.Raw("fields", e.recordedJSON())
	return []wire.Draft{{Type: wire.EventLogAppended, Payload: w.Close()}}
}

// errorMessage returns the model's own message.
func (e *execution) errorMessage() string {
	var p struct {
		Message string `json:"message"`
	}
	if strictjson.Read(e.env.Payload, &p) != nil || p.Message == "" {
		return "the model reported an error"
	}
	return p.Message
}

// artifactDraft contains the whole payload: it is stored only in the log.
func (e *execution) artifactDraft() []wire.Draft {
	version := e.env.SchemaVersion
	if e.kind.Version != Unlisted {
		version = integer(e.kind.Version) // of the schema it was validated against
	}
	var w wire.ObjectWriter
	w.String("artifactId", e.env.EnvelopeID)
	w.String("artifactType", e.env.Type)
	w.NonEmpty("nodeId", e.attrs.NodeID)
	w.String("version", strconv.FormatInt(int64(version), 10))
	e.writeDrift(&w)
	e.writeHints(&w)
	e.writeAnswerPart(&w)
	w.Raw("payload", e.env.Payload)
	return []wire.Draft{{Type: wire.EventArtifactCreated, Payload: w.Close()}}
}

// question is one question of a clarification.request. Its context stays in the
// recorded envelope: the data of an interrupt has no member for it (OpenWOP envelope
// contract §24, C5).
type question struct {
	ID       string          `json:"id"`
	Question string          `json:"question"`
	Schema   json.RawMessage `json:"schema"`
}

// clarificationDrafts turns the questions into an interrupt. ok is false when no
// usable question is left, which only a secret that equals a member's name can cause.
func (e *execution) clarificationDrafts() (drafts []wire.Draft, ok bool) {
	var ask struct {
		Questions   []question `json:"questions"`
		ContextType string     `json:"contextType"`
	}
	if strictjson.Read(e.env.Payload, &ask) != nil || len(ask.Questions) == 0 {
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
		questions = append(questions, q.withoutContext()...)
	}
	questions = append(questions, ']')

	id := e.interruptID()
	var asked wire.ObjectWriter
	asked.String("nodeId", e.attrs.NodeID)
	asked.String("interruptId", id)
	asked.Raw("questions", questions)
	asked.Raw("envelope", e.recordedJSON())

	var data wire.ObjectWriter
	data.Raw("questions", questions)
	data.NonEmpty("contextType", ask.ContextType)
	return []wire.Draft{
		{Type: wire.EventClarificationRequested, Payload: asked.Close()},
		{Type: wire.EventInterruptRequested, Payload: e.interruptPayload(id, data.Close())},
	}, true
}

// withoutContext returns the question without its context.
func (q question) withoutContext() []byte {
	var w wire.ObjectWriter
	w.String("id", q.ID)
	w.String("question", q.Question)
	if len(q.Schema) > 0 {
		w.Raw("schema", q.Schema)
	}
	return w.Close()
}

func (e *execution) interruptPayload(id string, data []byte) []byte {
	var w wire.ObjectWriter
	w.String("runId", e.req.Run.RunID)
	w.String("nodeId", e.attrs.NodeID)
	w.String("interruptId", id)
	w.String("kind", string(interrupt.Clarification))
	w.String("key", e.interruptKey())
	w.Raw("data", data)
	w.Raw("resumeSchema", []byte(interrupt.ModelAnswerSchema))
	if ms := e.req.QuestionTimeoutMs; ms > 0 {
		w.Raw("timeoutMs", strconv.AppendInt(nil, ms, 10))
	}
	w.String("requestedAt", wire.FormatTime(e.clock()))
	return w.Close()
}

// interruptKey returns <runId>:<nodeId>:<count>, so that a retry of the same round
// uses the same key. A longer key is hashed.
func (e *execution) interruptKey() string {
	count := 0
	if c := e.req.Counters.ClarificationRounds; c != nil {
		count = c.Current
	}
	key := e.req.Run.RunID + ":" + e.attrs.NodeID + ":" + strconv.Itoa(count)
	if len(key) <= maxInterruptKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// interruptID derives from run and correlationId, so that every retry has the same id.
func (e *execution) interruptID() string {
	sum := sha256.Sum256([]byte(e.req.Run.RunID + "\x00" + e.env.CorrelationID))
	return "int_" + hex.EncodeToString(sum[:12])
}
