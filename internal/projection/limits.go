package projection

import (
	"slices"
	"unicode/utf8"
)

// limits checks the vendor's limits of a whole schema.
func (l *linter) limits(root *value) {
	d := l.dialect
	c := root.count()
	for _, limit := range []struct {
		most, have int
		at, rule   string
		what       string
	}{
		{d.Depth, c.depth, c.deepest, RuleDepth, "nested objects; flatten the schema"},
		{d.Properties, c.properties, "", RuleProperties, "properties in the whole schema"},
		{d.Optional, c.optional, "", RuleOptional, "optional properties in the whole schema; require some"},
		{d.Unions, c.unions, "", RuleUnions, "schemas with several types or anyOf; require members, or give them one type"},
		{d.EnumValues, c.enumValues, "", RuleEnumValues, "values in all enums together"},
		{d.Text, c.text, "", RuleText, "characters in all names and enum values together"},
	} {
		if limit.most > 0 && limit.have > limit.most {
			l.report(limit.at, limit.rule, "%s takes at most %d %s; here are %d", d.Vendor, limit.most, limit.what, limit.have)
		}
	}
	if d.LargeEnum == 0 {
		return
	}
	for _, e := range c.enums {
		if e.values > d.LargeEnum && e.text > d.LargeEnumText {
			l.report(e.at, RuleEnumValues, "%s takes at most %d characters in an enum of more than %d values; here are %d",
				d.Vendor, d.LargeEnumText, d.LargeEnum, e.text)
		}
	}
}

// count measures a schema.
type count struct {
	depth                        int
	deepest                      string
	properties, enumValues, text int
	optional, unions             int
	enums                        []enumCount
}

type enumCount struct {
	at           string
	values, text int
}

func (v *value) count() count {
	var c count
	c.schema(v, 0)
	return c
}

// countOf measures a schema document.
func countOf(doc []byte) count { return read(doc).count() }

// schema counts a schema inside a number of objects.
func (c *count) schema(s *value, depth int) {
	if e := s.get("enum"); e != nil {
		text := 0
		for _, v := range e.items {
			if v.kind == strs {
				text += utf8.RuneCountInString(v.plain)
			}
		}
		c.enumValues += len(e.items)
		c.text += text
		c.enums = append(c.enums, enumCount{s.at + "/enum", len(e.items), text})
	}
	members := s.get("properties").list()
	if s.get("properties") != nil {
		depth++
	}
	if depth > c.depth {
		c.depth, c.deepest = depth, s.at
	}
	c.properties += len(members)
	required := s.get("required").texts()
	for _, m := range members {
		if !slices.Contains(required, m.name) {
			c.optional++
		}
	}
	if t := s.get("type"); s.get("anyOf") != nil || t != nil && t.kind == arrays {
		c.unions++
	}
	for _, m := range members {
		c.text += utf8.RuneCountInString(m.name)
	}
	s.schemas(func(sub *value, keyword, name string, _ bool) {
		below := depth
		if keyword == "$defs" {
			c.text += utf8.RuneCountInString(name)
			below = 0
		}
		c.schema(sub, below)
	})
}
