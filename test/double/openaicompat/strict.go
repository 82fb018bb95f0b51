package openaicompat

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// forbidden are the keywords a strict schema must not have (OpenWOP envelope
// contract §20, column "OpenAI strict").
var forbidden = []string{
	"oneOf", "allOf", "not", "if", "then", "else", "dependencies", "dependentRequired", "dependentSchemas", "prefixItems", "propertyNames",
	"patternProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "minContains", "maxContains", "minProperties", "maxProperties",
	"minLength", "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"minItems", "maxItems", "uniqueItems",
}

const (
	maxDepth      = 5
	maxProperties = 100
)

// strictWalk checks a schema, position by position; a property that is named
// like a keyword is none.
type strictWalk struct {
	defs       map[string]any
	properties int
}

// strict says what makes a schema unfit for strict mode.
func strict(raw json.RawMessage) string {
	var root map[string]any
	if json.Unmarshal(raw, &root) != nil {
		return "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'."
	}
	if root["type"] != "object" {
		return fmt.Sprintf("schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%v\"'.", root["type"])
	}
	if root["anyOf"] != nil {
		return "schema must not have 'anyOf' at the top level."
	}
	w := &strictWalk{}
	w.defs, _ = root["$defs"].(map[string]any)
	if wrong := w.schema(root, nil, 0); wrong != "" {
		return wrong
	}
	if w.properties > maxProperties {
		return fmt.Sprintf("%d properties in total; at most %d are permitted.", w.properties, maxProperties)
	}
	return ""
}

func (w *strictWalk) schema(v any, path []string, depth int) string {
	s, ok := v.(map[string]any)
	if !ok {
		return in(path, "schema must be an object")
	}
	if depth > maxDepth {
		return in(path, fmt.Sprintf("nested deeper than %d levels", maxDepth))
	}
	for _, name := range forbidden {
		if s[name] != nil {
			return in(path, fmt.Sprintf("'%s' is not permitted", name))
		}
	}
	if wrong := w.ref(s, path); wrong != "" {
		return wrong
	}
	if s["$ref"] == nil && s["type"] == nil && s["anyOf"] == nil && s["enum"] == nil && s["const"] == nil {
		return in(path, "schema must have a 'type' key")
	}
	if wrong := w.object(s, path); wrong != "" {
		return wrong
	}
	return w.inside(s, path, depth)
}

func (w *strictWalk) ref(s map[string]any, path []string) string {
	ref, ok := s["$ref"].(string)
	if !ok || ref == "#" {
		return ""
	}
	name, local := strings.CutPrefix(ref, "#/$defs/")
	if _, known := w.defs[name]; !local || !known {
		return in(path, fmt.Sprintf("reference '%s' can only point to definitions of the same schema", ref))
	}
	return ""
}

// object wants objects closed and every property required.
func (w *strictWalk) object(s map[string]any, path []string) string {
	props, _ := s["properties"].(map[string]any)
	if !isObject(s["type"]) && props == nil {
		return ""
	}
	w.properties += len(props)
	if s["additionalProperties"] != false {
		return in(path, "'additionalProperties' is required to be supplied and to be false")
	}
	required, _ := s["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if !slices.Contains(required, any(name)) {
			return in(path, fmt.Sprintf("'required' is required to be supplied and to be an array including every key in properties. Missing '%s'", name))
		}
	}
	for _, name := range required {
		if _, ok := props[fmt.Sprint(name)]; !ok {
			return in(path, fmt.Sprintf("extra required key '%v' supplied", name))
		}
	}
	return ""
}

func isObject(t any) bool {
	list, _ := t.([]any)
	return t == "object" || slices.Contains(list, any("object"))
}

// inside walks the schemas in a schema, one level further down.
func (w *strictWalk) inside(s map[string]any, path []string, depth int) string {
	for _, keyword := range []string{"properties", "$defs"} {
		members, _ := s[keyword].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if wrong := w.schema(members[name], append(slices.Clone(path), keyword, name), depth+1); wrong != "" {
				return wrong
			}
		}
	}
	if items, ok := s["items"]; ok {
		if wrong := w.schema(items, append(slices.Clone(path), "items"), depth+1); wrong != "" {
			return wrong
		}
	} else if s["type"] == "array" {
		return in(path, "array schema missing items")
	}
	branches, _ := s["anyOf"].([]any)
	for i, b := range branches {
		if wrong := w.schema(b, append(slices.Clone(path), "anyOf", fmt.Sprint(i)), depth+1); wrong != "" {
			return wrong
		}
	}
	return ""
}

func in(path []string, what string) string {
	quoted := make([]string, len(path))
	for i, p := range path {
		quoted[i] = "'" + p + "'"
	}
	return "In context=(" + strings.Join(quoted, ", ") + "), " + what + "."
}
