package schema

import (
	"fmt"
)

// maxTotalProperties limits the properties of a whole schema.
const maxTotalProperties = 100

// constraints are keywords of one type of value, with the vendors that reject them.
type constraints struct {
	rule     string
	keywords []string
	vendors  []string
}

// Which vendors reject a keyword changes; internal/projection has the whole table.
var constrained = []constraints{
	{RuleStringConstraint, []string{"minLength", "maxLength"}, []string{OpenAI, Anthropic}},
	{RuleStringConstraint, []string{"pattern"}, []string{Anthropic}},
	{RuleStringConstraint, []string{"format"}, nil},
	{RuleNumberConstraint, []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}, []string{Anthropic}},
	{RuleArrayConstraint, []string{"minItems", "maxItems"}, []string{Anthropic}},
	{RuleArrayConstraint, []string{"uniqueItems"}, []string{OpenAI, Anthropic, Gemini}},
}

// strict applies the rules of LevelStrict that concern one position.
func (l *linter) strict(p *position) {
	for _, c := range constrained {
		for _, k := range c.keywords {
			if _, ok := p.object[k]; ok {
				l.report(p.pointer(k), c.rule, "the keyword "+k+" is outside the strict subset; say it in the description", c.vendors...)
			}
		}
	}
	if !isObjectSchema(p.object) {
		return
	}
	if p.object["additionalProperties"] != false {
		l.report(p.pointer(), RuleClosedObjects, `every object needs "additionalProperties": false`, OpenAI, Anthropic)
	}
	properties, _ := p.object["properties"].(map[string]any)
	required := textsOf(p.object["required"])
	for _, name := range sortedKeys(properties) {
		if !required[name] {
			l.report(p.pointer("properties", name), RuleAllRequired,
				`every property must be listed in required; for an optional one allow "null" as well`, OpenAI)
		}
	}
}

// whole applies the rules of LevelStrict for the whole document.
func (l *linter) whole() {
	if !hasType(l.resolve(0), "object") {
		l.report("", RuleRootObject, `the root needs "type": "object"`, OpenAI, Anthropic, Gemini)
	}
	total := 0
	for _, p := range l.refs.positions {
		properties, _ := p.object["properties"].(map[string]any)
		total += len(properties)
	}
	if total > maxTotalProperties {
		l.report("", RuleMaxProperties, fmt.Sprintf("at most %d properties in the whole schema", maxTotalProperties))
	}
	l.recursion()
}

// recursion reports each recursive reference.
func (l *linter) recursion() {
	loops := l.refs.loops()
	for i, p := range l.refs.positions {
		ref, _ := p.object["$ref"].(string)
		if j, ok := l.refs.index(ref); ok && loops[i] == loops[j] {
			l.report(p.pointer("$ref"), RuleRecursiveRef, "the reference leads back to itself; unroll the recursion", Anthropic)
		}
	}
}
