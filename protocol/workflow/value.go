package workflow

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/strictjson"
)

// article names a variable type as strictjson.KindOf names kinds.
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
		return strictjson.KindOf(raw) == article(typ)
	}
	return true
}
