package markup

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/strictjson"
)

// Tags of parameters, with and without a prefix of the template.
var (
	parameter = regexp.MustCompile(`(?s)<(?:[^<>/\s]*[:｜])?parameter(?:=|\s+name=)["']?([^"'<>]+?)["']?(?:\s+string=["'](true|false)["'])?\s*>(.*?)</(?:[^<>\s]*[:｜])?parameter>`)
	pair      = regexp.MustCompile(`(?s)<arg_key>\s*(.*?)\s*</arg_key>\s*<arg_value>(.*?)</arg_value>`)
	opening   = regexp.MustCompile(`<(?:(?:[^<>/\s]*[:｜])?parameter[=\s]|arg_key>)`)
	closing   = regexp.MustCompile(`</(?:[^<>\s]*[:｜])?(?:function|invoke|tool_call)>`)
)

// readTags reads the parameters of a call up to its end. ok is false if the call or one of them has no end.
func (r *reader) readTags(text string) (arguments string, ok bool) {
	end := closing.FindStringIndex(text)
	if end == nil {
		return "", false
	}
	text = text[:end[0]]
	if strings.Trim(text, "\"'> \t\r\n") == "" {
		return "{}", true
	}
	list := parameter.FindAllStringSubmatch(text, -1)
	for _, p := range pair.FindAllStringSubmatch(text, -1) {
		list = append(list, []string{p[0], p[1], "", p[2]})
	}
	if len(list) == 0 || len(list) != len(opening.FindAllString(text, -1)) {
		return "", false
	}
	members := map[string]json.RawMessage{}
	for _, p := range list {
		members[p[1]] = valueOf(p[3], p[2], r.typesOf(p[1]))
	}
	return string(strictjson.Render(members)), true
}

// valueOf returns the value of a parameter. A template writes texts as they are, between line ends, and
// other values as JSON. stated says which of them it is, types what the schema allows.
func valueOf(text, stated string, types []string) json.RawMessage {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "\n"), "\n")
	asText := strictjson.Render(text)
	value := json.RawMessage(strings.TrimSpace(text))
	if literal, ok := literals[string(value)]; ok && !json.Valid(value) {
		value = json.RawMessage(literal)
	}
	switch {
	case stated == "true" || !json.Valid(value):
		return asText
	case stated == "false" || types == nil || !slices.Contains(types, "string"):
		return value
	case string(value) == "null" && slices.Contains(types, "null"):
		return value
	default:
		return asText
	}
}

// literals are those of Python.
var literals = map[string]string{"True": "true", "False": "false", "None": "null"} //nolint:gochecknoglobals // a constant

// typesOf returns the types that a schema allows for a member; nil if it does not say.
func (r *reader) typesOf(member string) []string {
	types, known := r.types[member]
	if schema, given := r.properties[member]; given && !known {
		types = allowed(r.root, schema, 0)
		r.types[member] = types
	}
	return types
}

func allowed(root map[string]json.RawMessage, schema json.RawMessage, depth int) (out []string) {
	const deepest = 8
	m := strictjson.Object(schema)
	if m == nil || depth > deepest {
		return nil
	}
	if ref, ok := strictjson.String(m["$ref"]); ok {
		name, local := strings.CutPrefix(ref, "#/$defs/")
		if !local {
			return nil
		}
		return allowed(root, strictjson.Object(root["$defs"])[name], depth+1)
	}
	if one, ok := strictjson.String(m["type"]); ok {
		return []string{one}
	}
	if json.Unmarshal(m["type"], &out) == nil && out != nil {
		return out
	}
	var branches []json.RawMessage
	if json.Unmarshal(m["anyOf"], &branches) == nil {
		for _, b := range branches {
			types := allowed(root, b, depth+1)
			if types == nil {
				return nil
			}
			out = append(out, types...)
		}
		return out
	}
	return nil
}
