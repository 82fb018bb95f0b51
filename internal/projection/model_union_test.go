package projection_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// reference refers to a definition, an old one or a new one.
func (m *maker) reference(t *rapid.T, depth int) model {
	if len(m.names) > 0 && flip(t, "known") {
		name := fmt.Sprintf("d%d", pick(t, "which", len(m.names)))
		return model{schema: describedRef(t, name), draw: m.names[name].draw, null: m.names[name].null}
	}
	target := m.model(t, max(depth, 2))
	name := fmt.Sprintf("d%d", len(m.names))
	if m.names == nil {
		m.names = map[string]model{}
	}
	m.names[name] = target
	m.defs = append(m.defs, fmt.Sprintf("%q:%s", name, target.schema))
	return model{schema: describedRef(t, name), draw: target.draw, null: target.null}
}

func describedRef(t *rapid.T, name string) string {
	return described(t, `{"$ref":"#/$defs/`+name+`"}`)
}

// tagged is a union of objects with a discriminating member.
func (m *maker) tagged(t *rapid.T, depth int) model {
	pin := rapid.SampledFrom([]string{`{"type":"string","enum":[%q]}`, `{"const":%q}`}).Draw(t, "pin")
	var branches []string
	var draws []func(*rapid.T, int) string
	for _, kind := range []string{"one", "two", "three"} {
		ps := append([]property{{
			"kind",
			model{schema: fmt.Sprintf(pin, kind), draw: func(*rapid.T, int) string { return `"` + kind + `"` }},
			true,
		}},
			m.properties(t, depth+1, "a", "b")...)
		branches = append(branches, `{`+keywords(ps)+`,"additionalProperties":false}`)
		draws = append(draws, func(t *rapid.T, depth int) string { return `{` + strings.Join(members(t, depth, ps), ",") + `}` })
	}
	u := model{}
	if flip(t, "or null") {
		branches, u.null = append(branches, `{"type":"null"}`), true
		draws = append(draws, func(*rapid.T, int) string { return "null" })
	}
	u.schema = fmt.Sprintf(`{%q:[%s]}`, rapid.SampledFrom([]string{"anyOf", "oneOf"}).Draw(t, "keyword"), strings.Join(branches, ","))
	u.draw = func(t *rapid.T, depth int) string { return draws[pick(t, "branch", len(draws))](t, depth) }
	return u
}

// untagged is a union of objects that differ in their members. A value fits one of them only: each has
// a required member that no other has.
func (m *maker) untagged(t *rapid.T, depth int) model {
	var branches []string
	var draws []func(*rapid.T, int) string
	for _, own := range []string{"x", "y/z", "ü"} {
		ps := append([]property{{own, m.text(t, depth+1), true}}, m.properties(t, depth+1, "a", "b")...)
		branches = append(branches, `{`+keywords(ps)+`,"additionalProperties":false}`)
		draws = append(draws, func(t *rapid.T, depth int) string { return `{` + strings.Join(members(t, depth, ps), ",") + `}` })
	}
	return model{
		schema: `{"anyOf":[` + strings.Join(branches, ",") + `]}`,
		draw:   func(t *rapid.T, depth int) string { return draws[pick(t, "branch", len(draws))](t, depth) },
	}
}

// scalars is a union of values of different types.
func (m *maker) scalars(t *rapid.T, depth int) model {
	all := []model{m.text(t, 9), m.number(t, 9), m.truth(t, 9)}
	switch pick(t, "container", 3) {
	case 0:
		all = append(all, m.object(t, depth+1))
	case 1:
		all = append(all, m.array(t, 9))
	}
	return union(all)
}

// mixed is a union of anything: what can't be distinguished becomes text. Of objects
// it has one at most.
func (m *maker) mixed(t *rapid.T, depth int) model {
	makers := []func(*rapid.T, int) model{m.text, m.bag, m.array, m.mapping, m.nullable, m.enum, m.anyValue, m.reference}
	all := []model{makers[pick(t, "first", len(makers))](t, depth+1), makers[pick(t, "second", len(makers))](t, depth+1)}
	u := union(all)
	return u
}

func union(all []model) model {
	var u model
	var branches []string
	for _, b := range all {
		branches = append(branches, b.schema)
		u.null = u.null || b.null
	}
	u.schema = `{"anyOf":[` + strings.Join(branches, ",") + `]}`
	u.draw = func(t *rapid.T, depth int) string { return all[pick(t, "branch", len(all))].draw(t, depth) }
	return u
}

// allOf is an object written in parts.
func (m *maker) allOf(t *rapid.T, depth int) model {
	first, second := m.properties(t, depth, "a", "b"), m.properties(t, depth, "c", "d")
	ps := append(append([]property{}, first...), second...)
	if len(ps) == 0 {
		return m.truth(t, depth)
	}
	return model{
		schema: `{"allOf":[{` + keywords(first) + `},{` + keywords(second) + `,"maxProperties":9}],"unevaluatedProperties":false}`,
		draw: func(t *rapid.T, depth int) string {
			return `{` + strings.Join(members(t, depth, ps), ",") + `}`
		},
	}
}

func (m *maker) tuple(t *rapid.T, depth int) model {
	x, y := m.model(t, depth+1), m.model(t, depth+1)
	return model{
		schema: `{"type":"array","prefixItems":[` + x.schema + `,` + y.schema + `],"items":false}`,
		draw: func(t *rapid.T, depth int) string {
			return `[` + strings.Join([]string{x.draw(t, depth+1), y.draw(t, depth+1)}[:pick(t, "places", 3)], ",") + `]`
		},
	}
}

// tree is a definition that refers to itself.
func (m *maker) tree(t *rapid.T, depth int) model {
	leaf := m.model(t, max(depth, 2))
	if m.names == nil {
		m.names = map[string]model{}
	}
	name := fmt.Sprintf("d%d", len(m.names))
	ps := []property{{"leaf", leaf, false}}
	m.vague = m.vague || leaf.null
	var draw func(t *rapid.T, depth int) string
	draw = func(t *rapid.T, depth int) string {
		all := members(t, depth, ps)
		if depth < 4 && flip(t, "grow") {
			all = append(all, `"next":`+draw(t, depth+1))
		}
		if depth < 4 && flip(t, "spread") {
			all = append(all, `"all":[`+draw(t, depth+1)+`,`+draw(t, depth+1)+`]`)
		}
		return `{` + strings.Join(all, ",") + `}`
	}
	m.names[name] = model{draw: draw}
	ref := `{"$ref":"#/$defs/` + name + `"}`
	m.defs = append(m.defs, fmt.Sprintf(`%q:{"type":"object","properties":{"leaf":%s,"next":%s,"all":{"type":"array","items":%s}},"additionalProperties":false}`, name, leaf.schema, ref, ref))
	return model{schema: ref, draw: draw}
}

// several is one keyword type with several types.
func (m *maker) several(t *rapid.T, _ int) model {
	return model{
		schema: `{"type":["string","integer","null","array"],"minLength":1,"minimum":1,"items":{"type":"boolean"}}`,
		null:   true,
		draw: func(t *rapid.T, _ int) string {
			return rapid.SampledFrom([]string{`"s"`, `5`, `null`, `[true]`, `[]`}).Draw(t, "value")
		},
	}
}
