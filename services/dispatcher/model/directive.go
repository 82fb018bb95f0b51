package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"

	"waybill.dev/waybill/protocol/strictjson"
)

// Directive is how strongly a model is asked to reason before its answer. Missing reasoning never
// rejects an answer (OpenWOP envelope contract §5).
type Directive string

// The strengths.
const (
	Mandatory Directive = "mandatory"
	Advisory  Directive = "advisory"
	Off       Directive = "off"
)

// Valid reports whether d is one of the three strengths.
func (d Directive) Valid() bool { return d == Mandatory || d == Advisory || d == Off }

// reasoningHint returns the instruction to reason, if the answer has a member for it.
func (l *Loop) reasoningHint(reasons bool) string {
	switch {
	case l.cfg.Directive == Off, !reasons:
		return ""
	case l.cfg.Directive == Mandatory:
		return ` Write how you come to the answer into the member "reasoning" before anything else. Never leave it out.`
	default:
		return ` If it helps you, write how you come to the answer into the member "reasoning" before anything else.`
	}
}

// reasonings caches whether a payload schema has a reasoning member.
type reasonings struct {
	cache[[sha256.Size]byte, bool]
}

func (c *reasonings) hasReasoning(schema json.RawMessage) bool {
	if !bytes.Contains(schema, []byte(`"reasoning"`)) {
		return false
	}
	found, _ := c.getOrCompile(sha256.Sum256(schema), func() (bool, int, error) {
		var s reasoned
		_ = strictjson.Read(schema, &s) // other schemas have no such member
		return s.hasReasoning(), sha256.Size + len(schema), nil
	})
	return found
}

// reasoned is what is read of a payload schema.
type reasoned struct {
	Properties map[string]json.RawMessage `json:"properties"`
	AllOf      []reasoned                 `json:"allOf"`
	AnyOf      []reasoned                 `json:"anyOf"`
	OneOf      []reasoned                 `json:"oneOf"`
}

func (s reasoned) hasReasoning() bool {
	return s.Properties["reasoning"] != nil || slices.ContainsFunc(slices.Concat(s.AllOf, s.AnyOf, s.OneOf), reasoned.hasReasoning)
}
