package projection_test

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// model is a schema together with a way to draw values it takes.
type model struct {
	schema string
	draw   func(t *rapid.T, depth int) string
	null   bool // takes null
}

// maker draws models, and gathers the definitions they refer to.
type maker struct {
	root  *int // shape of the root; nil for any
	defs  []string
	names map[string]model
	vague bool // somewhere null and absence are both taken
}

// document is a whole schema.
func (m *maker) document(t *rapid.T) model {
	root := m.model(t, 0)
	if len(m.defs) == 0 || !strings.HasPrefix(root.schema, "{") {
		return root
	}
	inner := strings.TrimPrefix(root.schema, "{")
	if inner != "}" {
		inner = "," + inner
	}
	root.schema = `{"$defs":{` + strings.Join(m.defs, ",") + `}` + inner
	return root
}

func pick(t *rapid.T, label string, n int) int { return rapid.IntRange(0, n-1).Draw(t, label) }

func flip(t *rapid.T, label string) bool { return rapid.Bool().Draw(t, label) }

// model draws one place of a schema; deep ones are small.
func (m *maker) model(t *rapid.T, depth int) model {
	makers := [shapes]func(*rapid.T, int) model{
		m.text, m.number, m.truth, m.enum, m.constant, m.anyValue, m.nullable,
		m.bag, m.reference, m.object, m.object, m.object, m.array, m.mapping, m.tagged, m.untagged, m.scalars,
		m.mixed, m.allOf, m.tuple, m.tree, m.several,
	}
	if m.root != nil {
		shape := *m.root
		m.root = nil
		return makers[shape](t, depth)
	}
	last := shapes
	if depth >= 2 {
		last = 9
	}
	return makers[pick(t, "shape", last)](t, depth)
}

// shapes is the number of makers.
const shapes = 22

func described(t *rapid.T, schema string) string {
	if !flip(t, "described") {
		return schema
	}
	return schema[:len(schema)-1] + `,"description":"what \"it\" is","title":"t","x-note":[{}],"examples":[null]}`
}

var words = []string{`""`, `"a"`, `"null"`, `"grüße \"x\""`, `"{}"`, `"\u0000\\"`, `"2026-01-02"`, `"\u007b\u007d"`}

func word(t *rapid.T) string { return rapid.SampledFrom(words).Draw(t, "word") }

func (m *maker) text(t *rapid.T, _ int) model {
	switch pick(t, "text", 4) {
	case 0:
		return model{
			schema: `{"type":"string","minLength":2,"maxLength":4,"pattern":"^a"}`,
			draw: func(t *rapid.T, _ int) string {
				return rapid.SampledFrom([]string{`"ab"`, `"abcd"`, `"a\"b"`}).Draw(t, "text")
			},
		}
	case 1:
		return model{schema: `{"type":"string","format":"date"}`, draw: func(*rapid.T, int) string { return `"2026-01-02"` }}
	}
	return model{schema: described(t, `{"type":"string"}`), draw: func(t *rapid.T, _ int) string { return word(t) }}
}

func (m *maker) number(t *rapid.T, _ int) model {
	draw := func(t *rapid.T, _ int) string {
		return rapid.SampledFrom([]string{
			"0", "7", "9007199254740993", "123456789012345678901234567890", "10.0", "1e2",
		}).Draw(t, "number")
	}
	schema := rapid.SampledFrom([]string{
		`{"type":"integer"}`, `{"type":"number"}`, `{"type":"integer","minimum":0}`,
		`{"type":"number","exclusiveMinimum":-1,"multipleOf":1}`, `{"minimum":0,"type":"number"}`,
	}).Draw(t, "numbers")
	return model{schema: described(t, schema), draw: draw}
}

func (m *maker) truth(t *rapid.T, _ int) model {
	return model{
		schema: described(t, `{"type":"boolean"}`),
		draw:   func(t *rapid.T, _ int) string { return fmt.Sprint(flip(t, "truth")) },
	}
}

func (m *maker) enum(t *rapid.T, _ int) model {
	lists := []struct {
		rest   string
		values []string
	}{
		{`"type":"string",`, []string{`"a"`, `"b"`}},
		{``, []string{`1`, `2.5`}},
		{``, []string{`"x"`, `1`, `true`, `null`}},
		{`"type":["string","null"],`, []string{`"x"`, `null`}},
		{``, []string{`{"a":[1]}`, `[]`, `"x"`}},
	}
	l := lists[pick(t, "enum", len(lists))]
	return model{
		schema: described(t, `{`+l.rest+`"enum":[`+strings.Join(l.values, ",")+`]}`),
		draw:   func(t *rapid.T, _ int) string { return rapid.SampledFrom(l.values).Draw(t, "value") },
		null:   slices.Contains(l.values, `null`),
	}
}

func (m *maker) constant(t *rapid.T, _ int) model {
	v := rapid.SampledFrom([]string{`true`, `"c"`, `3`, `null`, `{"c":null}`}).Draw(t, "const")
	return model{schema: `{"const":` + v + `}`, draw: func(*rapid.T, int) string { return v }, null: v == "null"}
}

func (m *maker) anyValue(t *rapid.T, _ int) model {
	return model{
		schema: rapid.SampledFrom([]string{`{}`, `true`, `{"description":"d"}`}).Draw(t, "any"),
		draw:   func(t *rapid.T, _ int) string { return anything(t, 0) },
		null:   false, // its null is text, so absence differs from it
	}
}

// anything draws any JSON value.
func anything(t *rapid.T, depth int) string {
	switch pick(t, "anything", 6-2*min(depth, 1)) {
	case 0:
		return "null"
	case 1:
		return word(t)
	case 2:
		return "1.50"
	case 3:
		return "[]"
	case 4:
		return `[` + anything(t, depth+1) + `,` + anything(t, depth+1) + `]`
	default:
		return `{"a":` + anything(t, depth+1) + `,"":` + anything(t, depth+1) + `}`
	}
}

func (m *maker) nullable(t *rapid.T, _ int) model {
	schema := rapid.SampledFrom([]string{
		`{"type":["string","null"]}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`,
		`{"type":["null","string"],"maxLength":9}`,
	}).Draw(t, "nullable")
	return model{schema: schema, null: true, draw: func(t *rapid.T, _ int) string {
		return rapid.SampledFrom([]string{"null", `"s"`, `"null"`}).Draw(t, "value")
	}}
}

func (m *maker) bag(t *rapid.T, _ int) model {
	schema := rapid.SampledFrom([]string{
		`{"type":"object"}`, `{"type":"object","additionalProperties":true}`,
		`{"type":"object","patternProperties":{"^x":{"type":"string"}}}`,
		`{"type":"object","maxProperties":3}`,
	}).Draw(t, "bag")
	return model{schema: described(t, schema), draw: func(t *rapid.T, _ int) string {
		return rapid.SampledFrom([]string{
			`{}`, `{"a":[null,{"b":"}"}]}`, `{"xy":"z","":12345678901234567890}`,
		}).Draw(t, "bag")
	}}
}

// property is a member of a drawn object.
type property struct {
	name     string
	model    model
	required bool
}

func (m *maker) properties(t *rapid.T, depth int, names ...string) []property {
	var ps []property
	for _, name := range names {
		if flip(t, "has "+name) {
			p := property{name, m.model(t, depth+1), flip(t, "required")}
			m.vague = m.vague || p.model.null && !p.required
			ps = append(ps, p)
		}
	}
	return ps
}

func keywords(ps []property) string {
	var properties, required []string
	for _, p := range ps {
		properties = append(properties, fmt.Sprintf("%q:%s", p.name, p.model.schema))
		if p.required {
			required = append(required, fmt.Sprintf("%q", p.name))
		}
	}
	return `"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":[` + strings.Join(required, ",") + `]`
}

func members(t *rapid.T, depth int, ps []property) []string {
	var out []string
	for _, p := range ps {
		if p.required || flip(t, "given") {
			out = append(out, fmt.Sprintf("%q:%s", p.name, p.model.draw(t, depth+1)))
		}
	}
	return out
}

func (m *maker) object(t *rapid.T, depth int) model {
	ps := m.properties(t, depth, "a", "reasoning", "b/c", "otherMembers", "d")
	var extra []string
	rest := `,"additionalProperties":false`
	switch kind := pick(t, "rest", 6); {
	case kind == 0 && len(ps) > 0:
		rest = ""
	case kind == 1:
		rest, extra = `,"additionalProperties":true`, []string{`"e":{"f":[null]}`, `"g":null`}
	case kind == 2:
		rest, extra = `,"additionalProperties":{"type":"integer"}`, []string{`"e":1`, `"g":20000000000000000000`}
	case kind == 3:
		rest, extra = `,"patternProperties":{"^x":{"type":"string"}},"additionalProperties":false`, []string{`"x1":"y"`, `"x2":""`}
	}
	return model{schema: described(t, `{`+keywords(ps)+rest+`}`), draw: func(t *rapid.T, depth int) string {
		all := members(t, depth, ps)
		for _, e := range extra {
			if flip(t, "extra") {
				all = append(all, e)
			}
		}
		return `{` + strings.Join(rapid.Permutation(all).Draw(t, "order"), ",") + `}`
	}}
}

func (m *maker) array(t *rapid.T, depth int) model {
	item := m.model(t, depth+1)
	return model{
		schema: described(t, `{"type":"array","items":`+item.schema+`,"maxItems":3}`),
		draw: func(t *rapid.T, depth int) string {
			return `[` + strings.Join(several(t, depth, item), ", ") + `]`
		},
	}
}

func several(t *rapid.T, depth int, item model) []string {
	out := make([]string, pick(t, "items", 4))
	for i := range out {
		out[i] = item.draw(t, depth+1)
	}
	return out
}

func (m *maker) mapping(t *rapid.T, depth int) model {
	item := m.model(t, depth+1)
	return model{
		schema: `{"type":"object","additionalProperties":` + item.schema + `,"propertyNames":{"minLength":1}}`,
		draw: func(t *rapid.T, depth int) string {
			all := several(t, depth, item)
			for i, v := range all {
				all[i] = []string{`"k"`, `"\""`, `"ü"`}[i] + `:` + v
			}
			return `{` + strings.Join(all, ",") + `}`
		},
	}
}
