package redact

import "bytes"

// Parts of a marker.
const (
	markerBegin = "[REDACTED"
	markerMax   = len(markerBegin) + len(":]") + maxIDLength
)

// markerAt returns the length of the marker at the start of text, 0 if there is none; more:
// the text may be the start of a marker. A marker is opaque: it replaces a secret (OpenWOP
// envelope contract §11, existing markers).
func markerAt(text []byte) (n int, more bool) {
	if len(text) == 0 || text[0] != '[' {
		return 0, false
	}
	if len(text) <= len(markerBegin) {
		return 0, bytes.HasPrefix([]byte(markerBegin), text)
	}
	if string(text[:len(markerBegin)]) != markerBegin {
		return 0, false
	}
	switch text[len(markerBegin)] {
	case ']':
		return len(markerBegin) + 1, false
	case ':':
	default:
		return 0, false
	}
	from := len(markerBegin) + 1
	for i := from; i < len(text) && i < markerMax; i++ {
		switch c := text[i]; {
		case c == ']':
			if i == from {
				return 0, false
			}
			return i + 1, false
		case c == '[' || c < ' ' || c == 0x7f:
			return 0, false
		}
	}
	return 0, len(text) < markerMax
}
