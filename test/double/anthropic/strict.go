package anthropic

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// forbidden lists the keywords not allowed in a strict schema (OpenWOP envelope contract §20,
// column "Anthropic strict").
var forbidden = []string{
	"oneOf", "allOf", "not", "if", "then", "else", "dependencies", "dependentRequired", "dependentSchemas", "prefixItems", "propertyNames",
	"patternProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "minContains", "maxContains", "minProperties", "maxProperties",
	"minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
	"maxItems", "uniqueItems",
}

// formats are the values of format that strict mode takes.
var formats = []string{
	"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid",
}

// Limits of the schemas that the vendor compiles.
const (
	maxOptional = 24
	maxUnions   = 16
)

// strictWalk checks a schema, position by position. A property named like a keyword is not a
// keyword.
type strictWalk struct {
	root             map[string]any
	optional, unions int
}

// strict returns why a schema is not valid in strict mode, empty if it is.
func strict(raw json.RawMessage) string {
	var root map[string]any
	if json.Unmarshal(raw, &root) != nil {
		return "Input should be a valid dictionary"
	}
	if root["type"] != "object" {
		return "the schema's root must be of type 'object'"
	}
	w := &strictWalk{root: root}
	if wrong := w.schema(root, nil); wrong != "" {
		return wrong
	}
	switch {
	case w.optional > maxOptional:
		return fmt.Sprintf("Schemas contains too many optional parameters (%d), which would make grammar compilation inefficient. Limit is %d.", w.optional, maxOptional)
	case w.unions > maxUnions:
		return fmt.Sprintf("Schemas contains too many parameters with union types (%d parameters with type arrays or anyOf). Limit is %d.", w.unions, maxUnions)
	default:
		return ""
	}
}

// schema checks one position. seen lists the references followed to reach it.
func (w *strictWalk) schema(v any, seen []string) string {
	s, ok := v.(map[string]any)
	if !ok {
		return "every schema must be an object"
	}
	for _, name := range forbidden {
		if s[name] != nil {
			return fmt.Sprintf("For '%s' type, property '%s' is not supported", typeOf(s), name)
		}
	}
	if n, ok := s["minItems"].(float64); ok && n > 1 {
		return fmt.Sprintf("For 'array' type, 'minItems' values other than 0 or 1 are not supported: %v", n)
	}
	if f, ok := s["format"].(string); ok && !slices.Contains(formats, f) {
		return fmt.Sprintf("For 'string' type, 'format' value '%s' is not supported", f)
	}
	if ref, ok := s["$ref"].(string); ok {
		return w.ref(ref, seen)
	}
	if s["type"] == nil && s["anyOf"] == nil && s["enum"] == nil && s["const"] == nil {
		return "every schema must have a 'type', 'anyOf', 'enum', 'const' or '$ref'"
	}
	if wrong := w.own(s); wrong != "" {
		return wrong
	}
	return w.inside(s, seen)
}

func typeOf(s map[string]any) string {
	if s["type"] == nil {
		return "any"
	}
	return fmt.Sprint(s["type"])
}

// ref follows a reference. It must stay within the schema and must not be recursive.
func (w *strictWalk) ref(ref string, seen []string) string {
	switch {
	case !strings.HasPrefix(ref, "#"):
		return fmt.Sprintf("External reference '%s' is not supported", ref)
	case slices.Contains(seen, ref) || ref == "#":
		return fmt.Sprintf("Circular reference detected in schema definitions: '%s'", ref)
	}
	target := resolve(w.root, ref)
	if target == nil {
		return fmt.Sprintf("Reference '%s' points to nothing", ref)
	}
	optional, unions := w.optional, w.unions
	wrong := w.schema(target, append(slices.Clone(seen), ref))
	w.optional, w.unions = optional, unions // counted at the definition, not at each reference
	return wrong
}

// own checks the keywords of one position.
func (w *strictWalk) own(s map[string]any) string {
	if list, ok := s["type"].([]any); (ok && len(list) > 1) || s["anyOf"] != nil {
		w.unions++
	}
	if list, ok := s["enum"].([]any); ok {
		for _, v := range list {
			switch v.(type) {
			case map[string]any, []any:
				return "Enum values must be strings, numbers, booleans or nulls"
			}
		}
	}
	props, _ := s["properties"].(map[string]any)
	if !isObject(s["type"]) && props == nil {
		return ""
	}
	if s["additionalProperties"] != false {
		return "For 'object' type, 'additionalProperties' must be explicitly set to false"
	}
	required, _ := s["required"].([]any)
	for name := range props {
		if !slices.Contains(required, any(name)) {
			w.optional++
		}
	}
	for _, name := range required {
		if _, ok := props[fmt.Sprint(name)]; !ok {
			return fmt.Sprintf("Required property '%v' is not defined in properties", name)
		}
	}
	return ""
}

func isObject(t any) bool {
	list, _ := t.([]any)
	return t == "object" || slices.Contains(list, any("object"))
}

// inside checks the subschemas of a schema.
func (w *strictWalk) inside(s map[string]any, seen []string) string {
	for _, keyword := range []string{"properties", "$defs", "definitions"} {
		members, _ := s[keyword].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			on := seen
			if keyword != "properties" { // recursion through a definition is found by its name
				on = append(slices.Clone(seen), "#/"+keyword+"/"+name)
			}
			if wrong := w.schema(members[name], on); wrong != "" {
				return wrong
			}
		}
	}
	if items, ok := s["items"]; ok {
		if wrong := w.schema(items, seen); wrong != "" {
			return wrong
		}
	}
	branches, _ := s["anyOf"].([]any)
	for _, b := range branches {
		if wrong := w.schema(b, seen); wrong != "" {
			return wrong
		}
	}
	return ""
}
