package strictjson

import "bytes"

// KindOf names the kind of a JSON value with its article, as in "an object", by how it begins: the
// value is known to be valid. Of what is empty it says "nothing".
func KindOf(raw []byte) string {
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
