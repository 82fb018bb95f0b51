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

// Request is a node's question: the protocol's InterruptPayload (OpenWOP host contract §6.1).
type Request struct {
	Kind Kind `json:"kind"`
	// Key identifies a question within a run: asked again, it receives the same answer.
	Key string `json:"key"`
	// Data is displayed to the responder; its shape depends on the kind.
	Data json.RawMessage `json:"data"`
	// ResumeSchema is the schema of valid answers; nil means any answer valid for the kind.
	ResumeSchema json.RawMessage `json:"resumeSchema,omitempty"`
	// TimeoutMs is the time limit for an answer; 0 means none.
	TimeoutMs int64 `json:"timeoutMs,omitempty"`
}

// Origin identifies the asking node of a run, and the number of the question (from 0).
type Origin struct {
	RunID, NodeID string
	Count         int
}

// maxKey is the protocol's maximum length of a key, in characters.
const maxKey = 256

// key returns the key the protocol recommends. With long ids it returns a digest, because
// truncated keys could collide.
func (p Origin) key() string {
	k := p.RunID + ":" + p.NodeID + ":" + strconv.Itoa(p.Count)
	if len(k) > maxKey {
		return p.InterruptID()
	}
	return k
}

// InterruptID returns the id of the interrupt, which depends only on the origin.
func (p Origin) InterruptID() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", p.RunID, p.NodeID, p.Count))
	return "int_" + hex.EncodeToString(sum[:16])
}

// The node types of interrupts.
const (
	TypeApprovalGate      = "core.approvalGate"
	TypeClarificationGate = "core.clarificationGate"
	TypeInterrupt         = "core.interrupt"
)

// Check validates the config of an interrupt node before a run exists. Paths are JSON pointers
// into the config.
func Check(typeID string, config json.RawMessage) []workflow.Problem {
	_, wrong := From(typeID, Origin{RunID: "run", NodeID: "node"}, config)
	return wrong
}

// RuleKind is the rule of a Problem with a node type that is not an interrupt.
const RuleKind = "kind"

// settings are the config members outside the data.
type settings struct {
	Kind         Kind            `json:"kind"`
	Key          string          `json:"key"`
	Data         json.RawMessage `json:"data"`
	ResumeSchema json.RawMessage `json:"resumeSchema"`
	TimeoutMs    integer         `json:"timeoutMs"`
	TimeoutSec   float64         `json:"timeoutSec"`
}

// integer is a number without a fraction, in any JSON notation.
type integer int64

// UnmarshalJSON accepts 2, 2.0 and 20e-1; a schema has checked that it has no fraction.
func (w *integer) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return err
	}
	*w = integer(f)
	return nil
}

// From reads the config of an interrupt node. If there are problems, the request is empty.
func From(typeID string, at Origin, config json.RawMessage) (Request, []workflow.Problem) {
	if len(config) == 0 {
		config = json.RawMessage(`{}`)
	}
	wrong := checkShape("config", "", config)
	if typeID == TypeInterrupt && len(wrong) == 0 {
		wrong = checkShape("interrupt", "", config)
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
		return Request{}, []workflow.Problem{{Rule: RuleKind, Message: "a node of type " + strconv.Quote(typeID) + " is not an interrupt"}}
	}
	return s.request(at, below, data)
}

func readSettings(config json.RawMessage, s *settings) *workflow.Problem {
	if err := strictjson.Read(config, s); err != nil {
		return &workflow.Problem{Rule: workflow.RuleJSON, Message: err.Error()}
	}
	if s.TimeoutMs > 0 && s.TimeoutSec > 0 {
		return &workflow.Problem{Path: "/timeoutSec", Rule: workflow.RuleExclusive, Message: "timeoutMs and timeoutSec are mutually exclusive; keep one"}
	}
	return nil
}

func (s settings) request(at Origin, below string, doc json.RawMessage) (Request, []workflow.Problem) {
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

// WithArtifact sets the data to display if the request has none: the artifact of an approval, the
// surface of a form, or the decision of a low-confidence question. Other requests are unchanged.
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

// CheckData finds problems that prevent a complete request from being displayed; nil if none.
func (r Request) CheckData() []workflow.Problem {
	if c, ok := r.confidence(); ok {
		return c.checkObserved()
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
