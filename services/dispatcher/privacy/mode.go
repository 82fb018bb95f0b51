// Package privacy says what of a workflow's runs is sensitive, and takes it out of
// what is about to be recorded (OpenWOP host contract §10.3).
//
// What is sensitive follows from the definition alone: what its author marks, and
// whatever a node makes that has read something marked. So every process agrees, and
// no history is needed. In doubt a value is sensitive.
package privacy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Mode is what becomes of a sensitive value.
type Mode string

// The modes. Passthrough leaves everything as it is, by its author's wish.
const (
	Mask        Mode = "mask"
	Omit        Mode = "omit"
	Hash        Mode = "hash"
	Passthrough Mode = "passthrough"
)

// redacted takes the place of a masked value, and of one that cannot be left out.
const redacted = `"[REDACTED]"`

// Conceal is what is told in the place of a value; nil: the member is left out.
func (m Mode) Conceal(value json.RawMessage) json.RawMessage {
	switch {
	case m == Passthrough || len(value) == 0:
		return value
	case m == Omit:
		return nil
	case m == Hash:
		var compact bytes.Buffer
		if json.Compact(&compact, value) != nil {
			return json.RawMessage(redacted)
		}
		sum := sha256.Sum256(compact.Bytes())
		return json.RawMessage(`"sha256:` + hex.EncodeToString(sum[:]) + `"`)
	default:
		return json.RawMessage(redacted)
	}
}

// mustStay is Conceal for members that an event cannot be without.
func (m Mode) mustStay(value json.RawMessage) json.RawMessage {
	if v := m.Conceal(value); v != nil {
		return v
	}
	return json.RawMessage(redacted)
}
