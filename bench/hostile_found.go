package main

import (
	"strconv"
	"strings"
)

// found are expensive schemas and payloads found by a search.
func found() []hostile {
	many := func(n int, item string) string {
		items := make([]string, n)
		for i := range items {
			items[i] = strings.ReplaceAll(item, "#N", strconv.Itoa(i))
		}
		return strings.Join(items, ",")
	}
	members := func(n int) string {
		return `{"type":"object","properties":{` + many(n, `"m#N":{"type":"string"}`) + `}}`
	}
	deep := func(levels int, name, inner string) string {
		return strings.Repeat(`{"type":"object","properties":{"`+name+`":`, levels) + inner + strings.Repeat(`}}`, levels)
	}
	tags := func(n int) string {
		return `{"type":"object","properties":{` + many(n, `"a#N":{"type":"string","enum":["x"]}`) + `},"required":[` + many(n, `"a#N"`) + `]}`
	}
	return []hostile{
		// Payloads that a schema multiplies.
		{"1,000 names missing in each item", `{"items":{"required":[` + many(1000, `"m#N"`) + `]}}`, `[` + many(5000, `{}`) + `]`},
		{"1,000 names asked for by another in each item", `{"items":{"dependentRequired":{"a":[` + many(1000, `"m#N"`) + `]}}}`, `[` + many(2500, `{"a":0}`) + `]`},
		{"a list of 8,000 compared 600 times", `{"allOf":[` + many(600, `{"$ref":"#/$defs/c"}`) + `],"$defs":{"c":{"const":[` + many(8000, `1`) + `]}}}`, `[` + many(7999, `1`) + `,2]`},
		{"unique items, 1,000 times", `{"allOf":[` + many(1000, `{"uniqueItems":true}`) + `]}`, `[` + many(3000, `#N`) + `]`},
		{"a pattern, 900 times", `{"allOf":[` + many(900, `{"pattern":"(a|b)*c?$"}`) + `]}`, `"` + strings.Repeat("a", 16_000) + `"`},
		{"1,000 properties and no others, in each item", `{"items":{"properties":{` + many(1000, `"p#N":true`) + `},"additionalProperties":false}}`, `[` + many(2500, `{"_":0}`) + `]`},
		{"a union of 12 for each item", `{"items":{"anyOf":[` + many(12, `{"type":"string"}`) + `]}}`, `[` + many(100_000, `1`) + `]`},
		{"256 KB of wrong items", `{"items":{"type":"string"}}`, `[` + many(128_000, `1`) + `]`},
		{"256 KB of right items", `{"items":{"type":"integer"}}`, `[` + many(128_000, `1`) + `]`},
		{"items of a long name", `{"additionalProperties":{"items":{"type":"string"}}}`, `{"` + strings.Repeat("n", 100_000) + `":[` + many(50_000, `1`) + `]}`},
		{"256 KB of patterns as values", `{"items":{"format":"regex"}}`, `[` + many(20_000, `"x{1000}"`) + `]`},
		// Patterns.
		{"a pattern of 90,000 states", `{"type":"string","pattern":"` + strings.Repeat("x{1000}", 90) + `"}`, `""`},
		{"15 patterns of 580,000 states", `{"type":"object","properties":{` + many(15, `"p#N":{"type":"string","pattern":"`+strings.Repeat("x{1000}", 580)+`"}`) + `}}`, `{}`},
		{"480 patterns of all letters", `{"type":"object","properties":{` + many(480, `"p#N":{"type":"string","pattern":"[\\pL\\pN]+[\\pL\\pN]{9}"}`) + `}}`, `{}`},
		{"600 patterns of names, of all letters", `{"type":"object","patternProperties":{` + many(600, `"(?i)[\\pL]{40}#N":true`) + `}}`, `{}`},
		// Places.
		{"a name of 30,000 bytes over 600 members", deep(1, strings.Repeat("n", 30_000), members(600)), `{}`},
		{"a name of 3,000 bytes over 90 members", deep(1, strings.Repeat("n", 3000), members(90)), `{}`},
		{"a name of 30,000 bytes over a list", `{"$defs":{"` + strings.Repeat("n", 30_000) + `":{"enum":[` + many(7000, `#N`) + `]}}}`, `{}`},
		{"200 members, 30 deep", deep(30, "a", members(200)), `{}`},
		// Copies.
		{"3,500 unknown words and a union", `{"type":["null","boolean","object","array","number","string"],` + many(3500, `"_#N":0`) + `,"anyOf":[` + many(300, `{}`) + `]}`, `{}`},
		{
			"3,500 unknown words at 80 places", `{"type":"object","properties":{` + many(80, `"p#N":{"allOf":[{"$ref":"#/$defs/e"},{"$ref":"#/$defs/f"}]}`) +
				`},"$defs":{"f":{"$ref":"#/$defs/e"},"e":{"type":["null","object","array","string"],` + many(3500, `"_#N":0`) + `}}}`, `{}`,
		},
		// Names, tags and references.
		{"9,000 names that no property has", `{"type":"object","properties":{"_":{"type":"string"}},"required":[` + many(9000, `"m#N"`) + `]}`, `{}`},
		{"a union of one object of 500 tags, 500 times", `{"anyOf":[` + many(500, `{"$ref":"#/$defs/a"}`) + `],"$defs":{"a":` + tags(500) + `}}`, `{}`},
		{"120 unions with an object of 200 tags", `{"type":"object","properties":{` + many(120, `"r#N":{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}]}`) + `},"$defs":{"a":` + tags(200) + `,"b":` + tags(1) + `}}`, `{}`},
		{"1,000 references to a circle", `{"anyOf":[` + many(1000, `{"$ref":"#/$defs/a"}`) + `],"$defs":{"a":{"$ref":"#/$defs/a"}}}`, `{}`},
		{"700 references to what is no schema", `{"x-own":{` + many(700, `"a#N":{}`) + `},"allOf":[` + many(700, `{"$ref":"#/x-own/a#N"}`) + `]}`, `{}`},
		{"700 resources", `{"$defs":{` + many(700, `"r#N":{"$id":"i#N","$ref":"i#N"}`) + `}}`, `{}`},
		// Invalid schemas.
		{"a list of 20,000 types that are none", `{"type":[` + many(20_000, `1`) + `]}`, `{}`},
		{"9,000 properties that are no schemas", `{"properties":{` + many(9000, `"p#N":1`) + `}}`, `{}`},
	}
}
