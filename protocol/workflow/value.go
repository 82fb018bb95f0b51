package workflow

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/strictjson"
)

// article adds the article to a variable type, like strictjson.KindOf.
func article(typ string) string {
	if typ == "object" || typ == "array" {
		return "an " + typ
	}
	return "a " + typ
}

// hasType reports whether a value has a variable's type. Types rejected by the shape check are not
// reported again.
func hasType(raw json.RawMessage, typ string) bool {
	switch typ {
	case "string", "number", "boolean", "object", "array":
		return strictjson.KindOf(raw) == article(typ)
	}
	return true
}
