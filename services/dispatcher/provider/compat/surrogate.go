package compat

import (
	"encoding/json"
	"regexp"
	"unicode/utf8"
)

// Servers that stream tokens can cut a character: in the halves of a surrogate pair, if they escape all
// but ASCII, or within its bytes. Each piece alone means nothing.
var (
	highAtEnd = regexp.MustCompile(`(?i)(?:^|[^\\])(?:\\\\)*(\\ud[89ab][0-9a-f]{2})$`) //nolint:gochecknoglobals // a constant
)

// joiner joins characters that were cut in two. The zero joiner is ready.
type joiner struct {
	// half is a part of a character that waits for the rest.
	half string
}

// add returns the text of a piece, without a half character at its end.
func (j *joiner) add(p textPiece) string {
	switch {
	case p.raw == nil && p.text == "": // a piece without text can come between the halves
		return ""
	case p.raw == nil:
		return j.flush() + p.text
	}
	inner := j.half + string(p.raw[1:len(p.raw)-1])
	j.half = ""
	if at := highAtEnd.FindStringSubmatchIndex(inner); at != nil {
		inner, j.half = inner[:at[2]], inner[at[2]:]
	} else if at := runeAtEnd(inner); at < len(inner) {
		inner, j.half = inner[:at], inner[at:]
	}
	return decode(inner)
}

// runeAtEnd returns the offset of the character that is incomplete at the end of a text, else the length.
func runeAtEnd(text string) int {
	for at := len(text) - 1; at >= 0 && at >= len(text)-utf8.UTFMax; at-- {
		if utf8.RuneStart(text[at]) {
			if !utf8.FullRuneInString(text[at:]) {
				return at
			}
			break
		}
	}
	return len(text)
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
