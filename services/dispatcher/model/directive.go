package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"

	"waybill.dev/waybill/protocol/strictjson"
)

// Directive is how strongly a model is asked to reason in its answer before it gives
// it. It is never a reason to refuse one (OpenWOP envelope contract §5).
type Directive string

// The strengths.
const (
	Mandatory Directive = "mandatory"
	Advisory  Directive = "advisory"
	Off       Directive = "off"
)

// Valid reports whether there is such a strength.
func (d Directive) Valid() bool { return d == Mandatory || d == Advisory || d == Off }

// reasoningHint asks for the payload's reasoning, where the schema has a place for it.
func (c *call) reasoningHint() string {
	switch {
	case c.Loop.cfg.Directive == Off, !c.reasonings.hasReasoning(c.req.Schema):
		return ""
	case c.Loop.cfg.Directive == Mandatory:
		return ` Write how you come to the answer into the member "reasoning" before anything else. Never leave it out.`
	default:
		return ` If it helps you, write how you come to the answer into the member "reasoning" before anything else.`
	}
}

// reasonings remembers which payloads have a place for reasoning.
type reasonings struct {
	cache[[sha256.Size]byte, bool]
}

func (c *reasonings) hasReasoning(schema json.RawMessage) bool {
	if !bytes.Contains(schema, []byte(`"reasoning"`)) {
		return false
	}
	found, _ := c.cache.getOrCompile(sha256.Sum256(schema), func() (bool, int, error) {
		var s struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		_ = strictjson.Read(schema, &s) // another form has no such member
		return s.Properties["reasoning"] != nil, sha256.Size + len(schema), nil
	})
	return found
}
