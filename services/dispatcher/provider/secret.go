package provider

import (
	"fmt"
	"log/slog"
)

// Secret is a key that prints, logs and marshals as a marker. Only a conversion to string reveals
// it, which only the code that sends it does.
type Secret string

// Redacted replaces a key.
const Redacted = "[REDACTED]"

// String hides the value.
func (Secret) String() string { return Redacted }

// GoString hides the value.
func (Secret) GoString() string { return Redacted }

// Format hides the value from every verb, %x and %d included.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(Redacted)) }

// LogValue hides the value.
func (Secret) LogValue() slog.Value { return slog.StringValue(Redacted) }

// MarshalText hides the value, in JSON and YAML too.
func (Secret) MarshalText() ([]byte, error) { return []byte(Redacted), nil }
