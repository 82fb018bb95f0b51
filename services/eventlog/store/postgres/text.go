package postgres

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// escape marks a text that the server cannot store as it is: with a zero byte or invalid UTF-8.
// Clients and vendors can send such texts, and a batch that can never be applied would stop the
// read model.
const escape = "\x01"

// encode returns a text that the server accepts.
func encode(s string) string {
	if !strings.HasPrefix(s, escape) && strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) {
		return s
	}
	return escape + base64.RawURLEncoding.EncodeToString([]byte(s))
}

// decode reverses encode, and leaves other text unchanged; the row's checksum finds errors.
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
