package redact

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"unicode"
	"unicode/utf8"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
)

// MinLength is the length of the shortest value that is matched, in bytes. Shorter values
// would match too much harmless text (OpenWOP envelope contract §11).
const MinLength = wire.MinSecretBytes

// maxIDLength limits the id of a secret, in bytes.
const maxIDLength = 128

// Secret is a value that must never be shown, and the id that replaces it.
type Secret struct {
	// ID is the secret's id in the host's vault. It is public.
	ID    string
	Value Value
}

// Value is the plaintext of a secret. Printing, logging and marshalling show a placeholder.
// Only Reveal returns the text.
type Value string

// hidden is the placeholder of a Value.
const hidden = "[REDACTED]"

// Reveal returns the plaintext, for matching only.
func (v Value) Reveal() string { return string(v) }

// Format writes the placeholder for every verb.
func (Value) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// String returns the placeholder.
func (Value) String() string { return hidden }

// GoString returns the placeholder.
func (Value) GoString() string { return hidden }

// MarshalText returns the placeholder, also for JSON and YAML.
func (Value) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue returns the placeholder.
func (Value) LogValue() slog.Value { return slog.StringValue(hidden) }

// Validate checks the id. It is part of markers, so it must not end or hide a marker, or
// contain the secret.
func (s Secret) Validate() error {
	switch {
	case s.ID == "" || len(s.ID) > maxIDLength || !utf8.ValidString(s.ID):
		return fault.New(fault.ValidationError, "secret id: must have 1 to %d bytes of UTF-8", maxIDLength)
	case len(s.Value) >= MinLength && strings.Contains(s.ID, s.Value.Reveal()):
		return fault.New(fault.ValidationError, "secret id: must not contain the secret's value")
	case strings.ContainsFunc(s.ID, func(r rune) bool { return r == '[' || r == ']' || !unicode.IsPrint(r) }):
		return fault.New(fault.ValidationError, "secret id: must not contain brackets or unprintable characters")
	}
	return nil
}

// marker returns the text that replaces a secret.
func marker(id string) string { return "[REDACTED:" + id + "]" }

// withheld replaces an id that contains the value of another secret.
const withheld = "withheld"
