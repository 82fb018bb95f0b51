package workflow

import (
	"bytes"
	"encoding/json"
)

// kindOf names the kind of a JSON value.
func kindOf(raw json.RawMessage) string {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// article names a variable type as kindOf names kinds.
func article(typ string) string {
	if typ == "object" || typ == "array" {
		return "an " + typ
	}
	return "a " + typ
}

// hasType reports whether a value is of a variable's type. A type the shape
// check has refused is not judged again.
func hasType(raw json.RawMessage, typ string) bool {
	switch typ {
	case "string", "number", "boolean", "object", "array":
		return kindOf(raw) == article(typ)
	}
	return true
}
