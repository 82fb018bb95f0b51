package schema

import (
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
)

// meantTypes are words of other languages for the types of JSON Schema.
var meantTypes = map[string]string{
	"int": "integer", "long": "integer", "float": "number", "double": "number", "decimal": "number", "num": "number",
	"str": "string", "text": "string", "char": "string", "bool": "boolean", "list": "array", "tuple": "array",
	"dict": "object", "map": "object", "json": "object", "record": "object", "none": "null", "nil": "null",
	"enum": `string" with "enum`, "date": `string" with "format": "date`, "datetime": `string" with "format": "date-time`,
}

// Explain returns why a document is no schema, with a remedy if the mistake is a common one. The error is
// that of Compile.
func (e *Error) Explain(doc []byte) string {
	if hint := e.hint(doc); hint != "" {
		return e.Reason + "; " + hint
	}
	return e.Reason
}

func (e *Error) hint(doc []byte) string {
	text, isText := strictjson.String(lookup(doc, e.Path))
	switch name := lastToken(e.Path); {
	case name == "type" && isText:
		if meant := meantTypes[strings.ToLower(text)]; meant != "" {
			return `write "` + meant + `"`
		}
		if near := Near(strings.ToLower(text), types); near != "" {
			return "did you mean " + near + "?"
		}
	case name == "required":
		return `required lists names, next to properties: {"properties": {"a": …}, "required": ["a"]}`
	case isText && (text == "true" || text == "false"):
		return "write " + text + " without quotes"
	case isText && parentToken(e.Path) == "properties":
		return `write {"type": "` + firstOf(meantTypes[strings.ToLower(text)], text) + `"}`
	case name == "properties":
		return `properties maps names to schemas: {"a": {"type": "string"}}`
	}
	return ""
}

// types are the types of JSON Schema.
var types = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

func parentToken(pointer string) string {
	if i := strings.LastIndexByte(pointer, '/'); i >= 0 {
		return lastToken(pointer[:i])
	}
	return ""
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
