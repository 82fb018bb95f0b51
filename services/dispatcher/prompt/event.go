package prompt

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"waybill.dev/waybill/protocol/wire"
)

// Observability is how much of a composition its event contains.
type Observability string

// The three levels.
const (
	// Off records no event.
	Off Observability = "off"
	// Hashed records hashes only. It is the default.
	Hashed Observability = "hashed"
	// Full also records the texts and values.
	Full Observability = "full"
)

// Valid reports whether o is one of the three levels.
func (o Observability) Valid() bool { return o == Off || o == Hashed || o == Full }

// Shapes of a composition.
const (
	shapeBoth   = "system+user"
	shapeSystem = "system-only"
	shapeUser   = "user-only"
)

// Payload is the payload of prompt.composed.
type Payload struct {
	NodeID         string                     `json:"nodeId"`
	Refs           []string                   `json:"refs"`
	Kind           string                     `json:"kind"`
	Hash           string                     `json:"hash"`
	VariableHashes map[string]string          `json:"variableHashes"`
	ContentTrust   wire.Trust                 `json:"contentTrust"`
	Composed       *string                    `json:"composed,omitempty"`
	SystemPrompt   *string                    `json:"systemPrompt,omitempty"`
	UserPrompt     *string                    `json:"userPrompt,omitempty"`
	Bindings       map[string]json.RawMessage `json:"variableBindings,omitempty"`
}

// Payload returns the payload of the event of a node's composition.
func (c *Composition) Payload(nodeID string, o Observability) Payload {
	body := c.shownBody()
	p := Payload{
		NodeID:         nodeID,
		Refs:           c.Refs,
		Kind:           c.shape(),
		Hash:           hash(body),
		VariableHashes: map[string]string{},
		ContentTrust:   c.Trust,
	}
	for name, raw := range c.variables {
		p.VariableHashes[name] = hash(shownText(raw))
	}
	if o != Full {
		return p
	}
	p.Composed, p.Bindings = &body, c.variables
	if c.HasSystem {
		p.SystemPrompt = &c.shown.System
	}
	if c.HasUser {
		p.UserPrompt = &c.shown.User
	}
	return p
}

// shownBody returns the whole composed text in its recorded form.
func (c *Composition) shownBody() string {
	switch c.shape() {
	case shapeSystem:
		return c.shown.System
	case shapeUser:
		return c.shown.User
	}
	return c.shown.System + separator + c.shown.User
}

func (c *Composition) shape() string {
	switch {
	case !c.HasUser:
		return shapeSystem
	case !c.HasSystem:
		return shapeUser
	}
	return shapeBoth
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}
