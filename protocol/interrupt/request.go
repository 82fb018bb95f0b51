package interrupt

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
)

// Request is what a node asks: the protocol's InterruptPayload (OpenWOP host contract
// §6.1).
type Request struct {
	Kind Kind `json:"kind"`
	// Key is one question of a run: asked again, it has the answer it had.
	Key string `json:"key"`
	// Data is what is shown to whoever answers; its shape is the kind's.
	Data json.RawMessage `json:"data"`
	// ResumeSchema is what an answer must satisfy; nil: whatever its kind takes.
	ResumeSchema json.RawMessage `json:"resumeSchema,omitempty"`
	// TimeoutMs is how long the question stands; 0: as long as its run.
	TimeoutMs int64 `json:"timeoutMs,omitempty"`
}

// Place is who asks: a node of a run, for the how many-th time (from 0).
type Place struct {
	RunID, NodeID string
	Count         int
}

// maxKey is the longest key of the protocol, in characters.
const maxKey = 256

// key is what the protocol recommends. A run and a node with long ids get a digest:
// the key has a bound, and two of them must not meet at it.
func (p Place) key() string {
	k := p.RunID + ":" + p.NodeID + ":" + strconv.Itoa(p.Count)
	if len(k) > maxKey {
		return p.InterruptID()
	}
	return k
}

// InterruptID is the id of the interrupt: the same whoever opens it.
func (p Place) InterruptID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", p.RunID, p.NodeID, p.Count))
	return "int_" + hex.EncodeToString(sum[:16])
}

// The node types that ask.
const (
	TypeApprovalGate      = "core.approvalGate"
	TypeClarificationGate = "core.clarificationGate"
	TypeInterrupt         = "core.interrupt"
)

// Asks reports whether nodes of a type are interrupts.
func Asks(typeID string) bool {
	return typeID == TypeApprovalGate || typeID == TypeClarificationGate || typeID == TypeInterrupt
}

// Check finds what is wrong with the config of a node that asks, before a run of it
// exists. Paths are JSON pointers below the config.
func Check(typeID string, config json.RawMessage) []workflow.Problem {
	_, wrong := From(typeID, Place{RunID: "run", NodeID: "node"}, config)
	return wrong
}

// RuleKind is the rule of a Problem with a node type that asks nothing.
const RuleKind = "kind"

// settings are the members of a config that are no data.
type settings struct {
	Kind         Kind            `json:"kind"`
	Key          string          `json:"key"`
	Data         json.RawMessage `json:"data"`
	ResumeSchema json.RawMessage `json:"resumeSchema"`
	TimeoutMs    whole           `json:"timeoutMs"`
	TimeoutSec   float64         `json:"timeoutSec"`
}

// whole is a number without a fraction, in any spelling that JSON has for it.
type whole int64

// UnmarshalJSON reads 2, 2.0 and 20e-1 alike; a schema has said that it is whole.
func (w *whole) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return err
	}
	*w = whole(f)
	return nil
}

// From reads the config of a node that asks. A request with problems is none.
func From(typeID string, at Place, config json.RawMessage) (Request, []workflow.Problem) {
	if len(config) == 0 {
		config = json.RawMessage(`{}`)
	}
	wrong := misfits("config", "", config)
	if typeID == TypeInterrupt && len(wrong) == 0 {
		wrong = misfits("interrupt", "", config)
	}
	var s settings
	if err := readSettings(config, &s); err != nil && len(wrong) == 0 {
		wrong = append(wrong, *err)
	}
	if len(wrong) > 0 {
		return Request{}, wrong
	}
	below, data := "", config
	switch typeID {
	case TypeApprovalGate:
		s.Kind = Approval
	case TypeClarificationGate:
		s.Kind = Clarification
	case TypeInterrupt:
		below, data = "/data", s.Data
	default:
		return Request{}, []workflow.Problem{{Rule: RuleKind, Message: "a node of type " + strconv.Quote(typeID) + " asks nothing"}}
	}
	return s.request(at, below, data)
}

func readSettings(config json.RawMessage, s *settings) *workflow.Problem {
	if err := strictjson.Read(config, s); err != nil {
		return &workflow.Problem{Rule: workflow.RuleJSON, Message: err.Error()}
	}
	if s.TimeoutMs > 0 && s.TimeoutSec > 0 {
		return &workflow.Problem{Path: "/timeoutSec", Rule: workflow.RuleExclusive, Message: "timeoutMs and timeoutSec exclude each other; keep one"}
	}
	return nil
}

func (s settings) request(at Place, below string, doc json.RawMessage) (Request, []workflow.Problem) {
	timeoutMs := max(int64(s.TimeoutMs), millis(s.TimeoutSec))
	data, wrong := readers[s.Kind](at, below, doc, timeoutMs)
	if s.ResumeSchema != nil {
		wrong = append(wrong, schemaProblem("/resumeSchema", s.ResumeSchema)...)
	}
	if len(wrong) > 0 {
		return Request{}, wrong
	}
	return Request{
		Kind: s.Kind, Key: cmp.Or(s.Key, at.key()), Data: data,
		ResumeSchema: s.ResumeSchema, TimeoutMs: timeoutMs,
	}, nil
}

// FromEnvelope lifts the payload of a clarification.request envelope, which satisfies
// its kind's schema, to the question it is (OpenWOP envelope contract §3.1). What a
// model thought, and what it tells a screen, is not part of that.
func FromEnvelope(at Place, payload json.RawMessage) (Request, []workflow.Problem) {
	return settings{Kind: Clarification}.request(at, "", payload)
}

// WithArtifact shows whoever answers what it is about: the data of an approval, the surface
// of a form, or the decision that somebody is not sure of, where it has none of its own. Other
// requests stay as they are.
func (r Request) WithArtifact(data json.RawMessage) Request {
	if c, ok := r.confidence(); ok && c.Decision == nil && len(data) > 0 {
		c.Decision = data
		r.Data = strictjson.RenderPlain(c)
		return r
	}
	if f, ok := r.form(); ok && f.Payload == nil && len(data) > 0 {
		f.Payload = data
		r.Data = strictjson.RenderPlain(f)
		return r
	}
	var d approvalData
	if r.Kind != Approval || len(data) == 0 || strictjson.Read(r.Data, &d) != nil || d.ArtifactData != nil {
		return r
	}
	d.ArtifactData = data
	r.Data = strictjson.RenderPlain(d)
	return r
}

// Unshowable is what keeps a request from being shown to anybody, once it has all of its
// data; nil: nothing.
func (r Request) Unshowable() []workflow.Problem {
	if c, ok := r.confidence(); ok {
		return c.unobserved()
	}
	d, ok := r.form()
	if !ok {
		return nil
	}
	if d.Payload == nil {
		return []workflow.Problem{{Path: "/data/payload", Rule: workflow.RuleRequired, Message: "want the surface, here or in the port input"}}
	}
	return surfaceProblems("/data/payload", d.Payload)
}
