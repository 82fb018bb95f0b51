package node

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// MaskMode is what becomes of a sensitive value.
type MaskMode string

// The modes. Passthrough leaves everything as it is, by its author's wish.
const (
	Mask        MaskMode = "mask"
	Omit        MaskMode = "omit"
	Hash        MaskMode = "hash"
	Passthrough MaskMode = "passthrough"
)

// redactedPart takes the place of a masked value, and of one that cannot be left out.
const redactedPart = `"[REDACTED]"`

// Conceal is what is toldPart in the place of a value; nil: the member is left out.
func (m MaskMode) Conceal(value json.RawMessage) json.RawMessage {
	switch {
	case m == Passthrough || len(value) == 0:
		return value
	case m == Omit:
		return nil
	case m == Hash:
		var compact bytes.Buffer
		if json.Compact(&compact, value) != nil {
			return json.RawMessage(redactedPart)
		}
		sum := sha256.Sum256(compact.Bytes())
		return json.RawMessage(`"sha256:` + hex.EncodeToString(sum[:]) + `"`)
	default:
		return json.RawMessage(redactedPart)
	}
}

// mustStay is Conceal for members that an event cannot be without.
func (m MaskMode) mustStay(value json.RawMessage) json.RawMessage {
	if v := m.Conceal(value); v != nil {
		return v
	}
	return json.RawMessage(redactedPart)
}
