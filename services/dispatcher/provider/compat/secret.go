package compat

import (
	"fmt"
	"log/slog"
)

// Secret is a key that prints, logs and marshals as a marker. Only a conversion
// to string shows it, and the one place that needs it does that.
type Secret string

const redacted = "[REDACTED]"

// String hides the value.
func (Secret) String() string { return redacted }

// GoString hides the value.
func (Secret) GoString() string { return redacted }

// Format hides the value from every verb, %x and %d included.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue hides the value.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the value, in JSON and YAML too.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
