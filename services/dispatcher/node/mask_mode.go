package node

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// MaskMode is how a sensitive value is recorded.
type MaskMode string

// The modes. Passthrough records values unchanged, as the author chose.
const (
	Mask        MaskMode = "mask"
	Omit        MaskMode = "omit"
	Hash        MaskMode = "hash"
	Passthrough MaskMode = "passthrough"
)

// redactedValue replaces a masked value, and an omitted one in a required member.
const redactedValue = `"[REDACTED]"`

// Conceal returns the recorded form of a value; nil omits the member.
func (m MaskMode) Conceal(value json.RawMessage) json.RawMessage {
	switch {
	case m == Passthrough || len(value) == 0:
		return value
	case m == Omit:
		return nil
	case m == Hash:
		var compact bytes.Buffer
		if json.Compact(&compact, value) != nil {
			return json.RawMessage(redactedValue)
		}
		sum := sha256.Sum256(compact.Bytes())
		return json.RawMessage(`"sha256:` + hex.EncodeToString(sum[:]) + `"`)
	default:
		return json.RawMessage(redactedValue)
	}
}

// concealRequired is Conceal for required members of an event.
func (m MaskMode) concealRequired(value json.RawMessage) json.RawMessage {
	if v := m.Conceal(value); v != nil {
		return v
	}
	return json.RawMessage(redactedValue)
}
