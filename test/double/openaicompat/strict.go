package openaicompat

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// limits are the strict schema rules that differ between OpenAI and compatible servers.
type limits struct {
	// forbidden lists keywords not allowed in a strict schema.
	forbidden []string
	depth     int
	// depth counts nested objects instead of steps
	objects    bool
	properties int
	// enums and letters limit the values of all enums, and the length of all names and values
	// together. 0 means no limit.
	enums, letters int
}

// unknown lists keywords that no strict schema may have.
var unknown = []string{
	"oneOf", "allOf", "not", "if", "then", "else", "dependencies", "dependentRequired", "dependentSchemas", "prefixItems", "propertyNames",
	"patternProperties", "unevaluatedProperties", "unevaluatedItems", "contains", "minContains", "maxContains", "minProperties", "maxProperties",
	"minLength", "maxLength", "uniqueItems",
}

// constraints lists keywords that OpenAI's newer models accept.
var constraints = []string{
	"pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
}

// formats lists the string formats that OpenAI supports.
var formats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}

func (o Options) limits() limits {
	if o.OpenAI {
		return limits{forbidden: unknown, depth: 10, objects: true, properties: 5000, enums: 1000, letters: 120_000}
	}
	// OpenWOP envelope contract §20, column "OpenAI strict".
	return limits{forbidden: slices.Concat(unknown, constraints), depth: 5, properties: 100}
}

// strictWalk checks a schema, position by position. A property named like a keyword is not a
// keyword.
type strictWalk struct {
	limits
	defs                            map[string]any
	seenProperties, values, written int
}

// unfit returns why a schema is not valid in strict mode, empty if it is. The last valid schema is
// cached. In a load of equal calls, checking it took a tenth of the server's time.
func (s *Server) unfit(raw json.RawMessage) string {
	if last := s.fit.Load(); last != nil && *last == string(raw) {
		return ""
	}
	wrong := s.options.limits().strict(raw)
	if wrong == "" {
		fit := string(raw)
		s.fit.Store(&fit)
	}
	return wrong
}

// strict returns why a schema is not valid in strict mode.
func (l limits) strict(raw json.RawMessage) string {
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
	w := &strictWalk{limits: l}
	w.defs, _ = root["$defs"].(map[string]any)
	if wrong := w.schema(root, nil, 0); wrong != "" {
		return wrong
	}
	return w.size()
}

// size returns which limit of the whole schema is exceeded.
func (w *strictWalk) size() string {
	switch {
	case w.seenProperties > w.properties:
		return fmt.Sprintf("%d properties in total; at most %d are permitted.", w.seenProperties, w.properties)
	case w.enums > 0 && w.values > w.enums:
		return fmt.Sprintf("%d enum values in total; at most %d are permitted.", w.values, w.enums)
	case w.letters > 0 && w.written > w.letters:
		return fmt.Sprintf("names and values have %d characters in total; at most %d are permitted.", w.written, w.letters)
	default:
		return ""
	}
}

// deeper returns the depth of the subschemas of s.
func (w *strictWalk) deeper(s map[string]any, depth int) int {
	if w.objects && !isObject(s["type"]) {
		return depth
	}
	return depth + 1
}

// count counts names and values. It returns an error text if one enum is too long.
func (w *strictWalk) count(s map[string]any) string {
	for _, keyword := range []string{"properties", "$defs"} {
		members, _ := s[keyword].(map[string]any)
		for name := range members {
			w.written += len(name)
		}
	}
	list, _ := s["enum"].([]any)
	if s["const"] != nil {
		w.written += len(fmt.Sprint(s["const"]))
	}
	letters := 0
	for _, v := range list {
		letters += len(fmt.Sprint(v))
	}
	w.values += len(list)
	w.written += letters
	if w.enums > 0 && len(list) > 250 && letters > 15_000 {
		return fmt.Sprintf("an enum of more than 250 values has %d characters; at most 15000 are permitted", letters)
	}
	return ""
}

// format returns an error text for a format that OpenAI does not support.
func (w *strictWalk) format(s map[string]any) string {
	if f := s["format"]; f != nil && !slices.Contains(formats, fmt.Sprint(f)) {
		return fmt.Sprintf("'%v' is not a valid format", f)
	}
	return ""
}

func (w *strictWalk) schema(v any, path []string, depth int) string {
	s, ok := v.(map[string]any)
	if !ok {
		return in(path, "schema must be an object")
	}
	if w.objects && isObject(s["type"]) && depth >= w.depth || depth > w.depth {
		return in(path, fmt.Sprintf("nested deeper than %d levels", w.depth))
	}
	for _, name := range w.forbidden {
		if s[name] != nil {
			return in(path, fmt.Sprintf("'%s' is not permitted", name))
		}
	}
	for _, check := range []func(map[string]any) string{w.count, w.format} {
		if wrong := check(s); wrong != "" {
			return in(path, wrong)
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

// object requires closed objects with all properties required.
func (w *strictWalk) object(s map[string]any, path []string) string {
	props, _ := s["properties"].(map[string]any)
	if !isObject(s["type"]) && props == nil {
		return ""
	}
	w.seenProperties += len(props)
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

// inside checks the subschemas of a schema.
func (w *strictWalk) inside(s map[string]any, path []string, depth int) string {
	depth = w.deeper(s, depth)
	for _, keyword := range []string{"properties", "$defs"} {
		members, _ := s[keyword].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if wrong := w.schema(members[name], append(slices.Clone(path), keyword, name), depth); wrong != "" {
				return wrong
			}
		}
	}
	if items, ok := s["items"]; ok {
		if wrong := w.schema(items, append(slices.Clone(path), "items"), depth); wrong != "" {
			return wrong
		}
	} else if s["type"] == "array" {
		return in(path, "array schema missing items")
	}
	branches, _ := s["anyOf"].([]any)
	for i, b := range branches {
		if wrong := w.schema(b, append(slices.Clone(path), "anyOf", fmt.Sprint(i)), depth); wrong != "" {
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
