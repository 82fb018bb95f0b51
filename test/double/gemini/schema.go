package gemini

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxDepth is the vendor's limit of schema nesting.
const maxDepth = 32

// simpleTypes are the types of JSON Schema.
var simpleTypes = []any{"string", "number", "integer", "boolean", "object", "array", "null"}

// schemaWalk checks a schema, position by position. Unknown keywords are ignored, because the
// vendor drops them silently. That includes oneOf and misspelled keywords (OpenWOP envelope
// contract §20, column "Gemini").
type schemaWalk struct {
	root map[string]any
	// open lists the references being followed through required members.
	open []string
}

// checkSchema returns why a schema is invalid, empty if it is valid.
func checkSchema(raw json.RawMessage) string {
	var root map[string]any
	if json.Unmarshal(raw, &root) != nil || root == nil {
		return "schema must be an object."
	}
	w := &schemaWalk{root: root}
	return w.schema(root, "#", 0)
}

func (w *schemaWalk) schema(v any, at string, depth int) string {
	s, ok := v.(map[string]any)
	if !ok {
		if _, isBool := v.(bool); isBool {
			return ""
		}
		return at + ": schema must be an object."
	}
	if depth > maxDepth {
		return at + ": schema exceeds the maximum allowed nesting depth."
	}
	if ref, ok := s["$ref"].(string); ok {
		return w.ref(s, ref, at, depth)
	}
	for _, check := range []func(map[string]any, string) string{kinds, enum, required} {
		if wrong := check(s, at); wrong != "" {
			return wrong
		}
	}
	return w.inside(s, at, depth)
}

// ref checks a reference: it is the only member of its schema, points to a definition, and is not
// recursive through required members. A document of such a schema would have no end.
func (w *schemaWalk) ref(s map[string]any, ref, at string, depth int) string {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if !strings.HasPrefix(name, "$") {
			return fmt.Sprintf("%s: '%s' must not be set beside '$ref'.", at, name)
		}
	}
	target, ok := w.find(ref)
	if !ok {
		return fmt.Sprintf("%s: reference '%s' is not found.", at, ref)
	}
	if slices.Contains(w.open, ref) {
		return fmt.Sprintf("%s: reference '%s' is cyclic; cyclic references are allowed within properties that are not required.", at, ref)
	}
	w.open = append(w.open, ref)
	wrong := w.schema(target, ref, depth+1)
	w.open = w.open[:len(w.open)-1]
	return wrong
}

func (w *schemaWalk) find(ref string) (any, bool) {
	if ref == "#" {
		return w.root, true
	}
	for _, keyword := range []string{"$defs", "definitions"} {
		if name, ok := strings.CutPrefix(ref, "#/"+keyword+"/"); ok {
			defs, _ := w.root[keyword].(map[string]any)
			target, found := defs[name]
			return target, found
		}
	}
	return nil, false
}

func kinds(s map[string]any, at string) string {
	t, ok := s["type"]
	if !ok {
		return ""
	}
	list, isList := t.([]any)
	if !isList {
		list = []any{t}
	}
	for _, one := range list {
		if !slices.Contains(simpleTypes, one) {
			return fmt.Sprintf("%s: '%v' is no type.", at, one)
		}
	}
	return ""
}

func enum(s map[string]any, at string) string {
	values, has := s["enum"]
	if list, ok := values.([]any); has && (!ok || len(list) == 0) {
		return at + ": enum must be a list of at least one value."
	}
	return ""
}

func required(s map[string]any, at string) string {
	props, _ := s["properties"].(map[string]any)
	list, _ := s["required"].([]any)
	for _, name := range list {
		if _, ok := props[fmt.Sprint(name)]; !ok {
			return fmt.Sprintf("%s.required: property '%v' is not defined.", at, name)
		}
	}
	return ""
}

// inside checks the subschemas of a schema, one level deeper.
func (w *schemaWalk) inside(s map[string]any, at string, depth int) string {
	props, _ := s["properties"].(map[string]any)
	must, _ := s["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if wrong := w.member(props[name], at+"/properties/"+name, depth+1, slices.Contains(must, any(name))); wrong != "" {
			return wrong
		}
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if inner, ok := s[keyword]; ok {
			if wrong := w.member(inner, at+"/"+keyword, depth+1, false); wrong != "" {
				return wrong
			}
		}
	}
	for _, keyword := range []string{"anyOf", "prefixItems"} {
		list, _ := s[keyword].([]any)
		for i, inner := range list {
			if wrong := w.member(inner, fmt.Sprintf("%s/%s/%d", at, keyword, i), depth+1, false); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// member checks a subschema. An optional member may be recursive: the walk stops where a reference
// leads back.
func (w *schemaWalk) member(v any, at string, depth int, must bool) string {
	s, _ := v.(map[string]any)
	ref, isRef := s["$ref"].(string)
	if must || !isRef {
		return w.schema(v, at, depth)
	}
	if slices.Contains(w.open, ref) || ref == "#" {
		return ""
	}
	return w.schema(v, at, depth)
}
