package compat

import (
	"encoding/json"
	"regexp"
)

// Servers that escape all but ASCII can cut a character in two: the halves of a surrogate pair are
// then in two pieces, and each alone means nothing.
var (
	highAtEnd = regexp.MustCompile(`(?i)(?:^|[^\\])(?:\\\\)*(\\ud[89ab][0-9a-f]{2})$`) //nolint:gochecknoglobals // a constant
)

// joiner joins characters that were cut in two. The zero joiner is ready.
type joiner struct {
	// half is the escape of a first half that waits for its second one.
	half string
}

// add returns the text of a piece, without a half character at its end.
func (j *joiner) add(p textPiece) string {
	if p.raw == nil {
		return j.flush() + p.text
	}
	inner := j.half + string(p.raw[1:len(p.raw)-1])
	j.half = ""
	if at := highAtEnd.FindStringSubmatchIndex(inner); at != nil {
		inner, j.half = inner[:at[2]], inner[at[2]:]
	}
	return decode(inner)
}

// flush returns the replacement character for a half that stayed alone.
func (j *joiner) flush() string {
	half := j.half
	j.half = ""
	return decode(half)
}

// decode reads the inside of a JSON string. It is one: it was cut from a valid document at the
// beginning of an escape.
func decode(inner string) (text string) {
	if inner == "" {
		return ""
	}
	_ = json.Unmarshal([]byte(`"`+inner+`"`), &text)
	return text
}
