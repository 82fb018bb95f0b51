package postgres

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// escape begins a text that the server could not hold: one with a zero byte or
// with bytes that are no UTF-8. Such a text comes out of what clients and vendors
// say, and a batch that can never be applied would stop the read model.
const escape = "\x01"

// encode makes a text that the server takes.
func encode(s string) string {
	if !strings.HasPrefix(s, escape) && strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) {
		return s
	}
	return escape + base64.RawURLEncoding.EncodeToString([]byte(s))
}

// decode reads what encode made, and leaves anything else as it is: its sum tells.
func decode(s string) string {
	rest, escaped := strings.CutPrefix(s, escape)
	if !escaped {
		return s
	}
	b, err := base64.RawURLEncoding.DecodeString(rest)
	if err != nil {
		return s
	}
	return string(b)
}
