package redact

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/fault"
)

// MinLength is the shortest value that is matched, in bytes: a shorter one
// would blacken half of every text (OpenWOP envelope contract §11).
const MinLength = 8

// maxIDLength bounds the id of a secret, in bytes.
const maxIDLength = 128

// Secret is a value that is never to be shown, and the id shown in its place.
type Secret struct {
	// ID is the secret's id in the host's vault. It is public.
	ID    string
	Value Value
}

// Value is the plaintext of a secret. Whatever prints, logs or marshals it
// shows a placeholder; only Reveal gives the text.
type Value string

// hidden is what a Value shows of itself.
const hidden = "[REDACTED]"

// Reveal gives the plaintext, for matching only.
func (v Value) Reveal() string { return string(v) }

// Format writes the placeholder for every verb.
func (Value) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// String gives the placeholder.
func (Value) String() string { return hidden }

// GoString gives the placeholder.
func (Value) GoString() string { return hidden }

// MarshalText gives the placeholder, to JSON and YAML too.
func (Value) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue gives the placeholder.
func (Value) LogValue() slog.Value { return slog.StringValue(hidden) }

// Validate checks the id: it goes verbatim into markers, so it must not be
// able to end one, to hide one, or to be the secret itself.
func (s Secret) Validate() error {
	switch {
	case s.ID == "" || len(s.ID) > maxIDLength || !utf8.ValidString(s.ID):
		return fault.New(fault.ValidationError, "secret id: needs 1 to %d bytes of UTF-8", maxIDLength)
	case len(s.Value) >= MinLength && strings.Contains(s.ID, s.Value.Reveal()):
		return fault.New(fault.ValidationError, "secret id: must not contain the secret's value")
	case strings.ContainsFunc(s.ID, func(r rune) bool { return r == '[' || r == ']' || !unicode.IsPrint(r) }):
		return fault.New(fault.ValidationError, "secret id: brackets and unprintable characters are not allowed")
	}
	return nil
}

// marker is what stands in place of a secret.
func marker(id string) string { return "[REDACTED:" + id + "]" }

// withheld stands for an id that contains the value of some other secret.
const withheld = "withheld"
