package schematest

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Samples generates documents that a schema allows: of each object the smallest, the largest, and
// one for each further sample of each member; each branch of a union; each allowed value. It cannot
// generate strings for patterns or formats, so it picks those of words that match. The caller
// asserts that the result is valid, so that an invalid sample is not mistaken for a mutant.
func Samples(schema any, words ...string) []any {
	s := sampler{schemas{schema}, words}
	return s.of(schema)
}

type sampler struct {
	schemas

	words []string
}

func (s sampler) of(schema any) []any {
	m, ok := schema.(map[string]any)
	if !ok || len(m) == 0 { // the schema true: anything
		return []any{nil, true, json.Number("1.5"), "any", []any{nil}, map[string]any{"any": []any{}}}
	}
	if c, ok := m["const"]; ok {
		return []any{c}
	}
	if list, ok := m["enum"].([]any); ok {
		return list
	}
	if ref, ok := m["$ref"].(string); ok {
		return s.of(s.resolve(ref))
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		if list, ok := m[k].([]any); ok && m["properties"] == nil {
			var out []any
			for _, branch := range list {
				out = append(out, s.of(branch)...)
			}
			return out
		}
	}
	types, _ := m["type"].([]any)
	if t, ok := m["type"].(string); ok {
		types = []any{t}
	}
	var out []any
	for _, t := range types {
		out = append(out, s.typed(t.(string), m)...)
	}
	return out
}

func (s sampler) typed(kind string, m map[string]any) []any {
	switch kind {
	case "object":
		return s.objects(m)
	case "array":
		return s.arrays(m)
	case "string":
		return s.texts(m)
	case "integer", "number":
		if low, ok := m["minimum"].(json.Number); ok {
			return []any{low}
		}
		return []any{json.Number("0")}
	case "boolean":
		return []any{true, false}
	default:
		return []any{nil}
	}
}

func (s sampler) texts(m map[string]any) []any {
	pattern, patterned := m["pattern"].(string)
	format, formatted := m["format"].(string)
	if !patterned && !formatted {
		n, _ := whole(m, "minLength")
		return []any{strings.Repeat("x", max(n, 1))}
	}
	var out []any
	for _, w := range s.words {
		_, notTime := time.Parse(time.RFC3339, w)
		fits := format != "uri" || strings.Contains(w, "://")
		if fits = fits && (format != "date-time" || notTime == nil); fits && regexp.MustCompile(pattern).MatchString(w) {
			out = append(out, w)
		}
	}
	return out
}

// arrays returns one array per item: mutants of short documents are validated fastest.
func (s sampler) arrays(m map[string]any) []any {
	var out []any
	for _, item := range s.of(m["items"]) {
		out = append(out, []any{item})
	}
	if least, _ := whole(m, "minItems"); least == 0 {
		out = append(out, []any{})
	}
	return out
}

func (s sampler) objects(m map[string]any) []any {
	properties, _ := m["properties"].(map[string]any)
	full := map[string]any{}
	of := map[string][]any{}
	for name, sub := range properties {
		if of[name] = s.of(sub); len(of[name]) > 0 {
			full[name] = of[name][0]
		}
	}
	if m["additionalProperties"] == nil || m["additionalProperties"] == true {
		full["more"] = []any{map[string]any{}}
	} else if more, ok := m["additionalProperties"].(map[string]any); ok {
		for _, v := range s.of(more) {
			full["more"] = v
			break
		}
	}
	least := map[string]any{}
	required, _ := m["required"].([]any)
	for _, name := range required {
		least[name.(string)] = full[name.(string)]
	}
	out := []any{full, least}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		for _, v := range of[name][min(1, len(of[name])):] {
			other := maps.Clone(least)
			other[name] = v
			out = append(out, other)
		}
	}
	return out
}
