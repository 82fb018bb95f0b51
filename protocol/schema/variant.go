package schema

import (
	"slices"
	"strconv"
)

// variants checks a union: one required string member, the same in all branches, must identify the
// branch by its single value. A union with at most one object branch, such as T or null, needs no
// discriminator (OpenWOP envelope contract §4.2, §20).
func (l *linter) variants(p *position, branches []int) {
	objects := 0
	for _, i := range branches {
		if isObjectSchema(l.resolve(i)) {
			objects++
		}
	}
	if objects < 2 {
		return
	}
	var shared []string
	seen := map[int]bool{} // many branches may refer to one schema
	sound := true
	for i, branch := range branches {
		end, ok := l.refs.resolve(branch)
		tags := l.discriminators(end, ok)
		if len(tags) == 0 {
			sound = false
			l.report(p.pointer("anyOf", strconv.Itoa(i)), RuleVariantDiscriminator,
				`the branch needs a required member of type "string" with an enum of exactly one value, to tell it from the others`)
		}
		switch {
		case i == 0:
			shared = tags
		case !seen[end]:
			shared = common(shared, tags)
		}
		seen[end] = true
	}
	if sound && len(shared) == 0 {
		l.report(p.pointer("anyOf"), RuleVariantDiscriminator, "the branches have no discriminator in common; use one member name in all of them")
	}
}

// common returns the names in both sorted lists.
func common(a, b []string) []string {
	var out []string
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			out = append(out, a[0])
			a, b = a[1:], b[1:]
		}
	}
	return out
}

// resolve returns the schema at the end of a position's references; nil if there is none.
func (l *linter) resolve(i int) map[string]any {
	end, ok := l.refs.resolve(i)
	if !ok {
		return nil
	}
	return l.refs.positions[end].object
}

// discriminators lists the members of a schema with a single string value.
func (l *linter) discriminators(end int, ok bool) []string {
	if !ok {
		return nil
	}
	if tags, known := l.tags[end]; known {
		return tags
	}
	tags := discriminators(l.refs.positions[end].object)
	l.tags[end] = tags
	return tags
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

// discriminators lists the members of s with a single string value.
func discriminators(s map[string]any) []string {
	properties, _ := s["properties"].(map[string]any)
	required := textsOf(s["required"])
	var tags []string
	for _, name := range sortedKeys(properties) {
		member, _ := properties[name].(map[string]any)
		values, _ := member["enum"].([]any)
		if member["type"] == "string" && len(values) == 1 && required[name] {
			if _, ok := values[0].(string); ok {
				tags = append(tags, name)
			}
		}
	}
	return tags
}

// textsOf returns the strings of a list.
func textsOf(v any) map[string]bool {
	list, _ := v.([]any)
	texts := make(map[string]bool, len(list))
	for _, item := range list {
		if text, ok := item.(string); ok {
			texts[text] = true
		}
	}
	return texts
}
