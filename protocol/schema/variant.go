package schema

import (
	"slices"
	"strconv"
)

// variants checks a union: every branch is told from the others by one required
// string member that can only have one value, the same member in all branches.
// A union with at most one object branch, such as T or null, needs no telling
// (OpenWOP envelope contract §4.2, §20).
func (l *linter) variants(p position) {
	union, _ := p.object["anyOf"].([]any)
	branches := make([]map[string]any, len(union))
	objects := 0
	for i, b := range union {
		branches[i] = l.resolve(b)
		if isObjectSchema(branches[i]) {
			objects++
		}
	}
	if objects < 2 {
		return
	}
	var shared []string
	sound := true
	for i, b := range branches {
		tags := discriminators(b)
		if len(tags) == 0 {
			sound = false
			l.report(p.pointer("anyOf", strconv.Itoa(i)), RuleVariantDiscriminator,
				`the branch needs a required member of type "string" with an enum of exactly one value, to tell it from the others`)
		}
		if i == 0 {
			shared = tags
		}
		shared = slices.DeleteFunc(slices.Clone(shared), func(t string) bool { return !slices.Contains(tags, t) })
	}
	if sound && len(shared) == 0 {
		l.report(p.pointer("anyOf"), RuleVariantDiscriminator, "the branches have no discriminator in common; use one member name in all of them")
	}
}

// resolve follows references to the schema they stand for. A cycle, or a
// reference that leads nowhere, ends at what was reached.
func (l *linter) resolve(v any) map[string]any {
	object, _ := v.(map[string]any)
	for range l.refs.positions {
		ref, ok := object["$ref"].(string)
		if !ok {
			return object
		}
		target, ok := l.refs.target(ref)
		if !ok {
			return object
		}
		object = target.object
	}
	return nil
}

func isObjectSchema(s map[string]any) bool {
	if _, ok := s["properties"]; ok {
		return true
	}
	return hasType(s, "object")
}

// hasType reports whether the type keyword of s allows t.
func hasType(s map[string]any, t string) bool {
	switch v := s["type"].(type) {
	case string:
		return v == t
	case []any:
		return slices.Contains(v, any(t))
	}
	return false
}

// discriminators lists the members of s that pin one string value.
func discriminators(s map[string]any) []string {
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	var tags []string
	for _, name := range sortedKeys(properties) {
		member, _ := properties[name].(map[string]any)
		values, _ := member["enum"].([]any)
		if member["type"] == "string" && len(values) == 1 && slices.Contains(required, any(name)) {
			if _, ok := values[0].(string); ok {
				tags = append(tags, name)
			}
		}
	}
	return tags
}
