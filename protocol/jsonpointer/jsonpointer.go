// Package jsonpointer writes and reads the tokens of JSON pointers (RFC 6901).
package jsonpointer

import (
	"net/url"
	"strings"
)

// Escape returns a member's name as a token of a pointer.
func Escape(name string) string {
	if !strings.ContainsAny(name, "~/") { // almost all names
		return name
	}
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// Unescape returns the member's name of a token.
func Unescape(token string) string {
	if !strings.Contains(token, "~") {
		return token
	}
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}

// Of returns the pointer with the names in order; "" for none, which is the whole document.
func Of(names ...string) string {
	var b strings.Builder
	for _, n := range names {
		b.WriteByte('/')
		b.WriteString(Escape(n))
	}
	return b.String()
}

// OfFragment returns the pointer in the fragment of a URL; "" without a fragment.
func OfFragment(location string) string {
	_, frag, _ := strings.Cut(location, "#")
	if p, err := url.PathUnescape(frag); err == nil {
		return p
	}
	return frag
}
