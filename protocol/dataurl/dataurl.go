// Package dataurl recognizes data: URLs (RFC 2397) among texts.
package dataurl

import (
	"regexp"
	"strings"
)

// head matches a data: URL up to its data (RFC 2397 §3). A media type and parameters are optional. White
// space is allowed in quoted values only: "Data: 3 customers, 2 orders" is ordinary text. Some readers
// decode base64 after any media type, so the last alternative accepts every type.
var head = regexp.MustCompile(`(?i)^data:(?:` +
	`(?:` + part + `/` + part + `)?(?:;` + part + `(?:=(?:"[^"]*"|[^",;\s]*))?)*` +
	`|[^,\s]*;base64),`)

// part matches a type, or the name of a parameter, with its percent-encoded characters.
const part = "[\\w.+!#$&^*'%~|`-]+"

const scheme = "data:"

// Head is the length of a data: URL up to its data, with the comma; 0 if the text is none.
func Head(text string) int { return len(head.FindString(text)) }

// HasScheme reports whether a text begins with data: in any case.
func HasScheme(text string) bool {
	return len(text) >= len(scheme) && strings.EqualFold(text[:len(scheme)], scheme)
}

// Cut splits a text that begins with data: into the part between scheme and data, and the data. A quoted
// value in a data: URL may contain a comma. Other texts end their head at the first comma.
func Cut(text string) (head, body string) {
	if n := Head(text); n > 0 {
		return text[len(scheme) : n-len(",")], text[n:]
	}
	head, body, _ = strings.Cut(text[len(scheme):], ",")
	return head, body
}
