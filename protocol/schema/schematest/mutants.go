package schematest

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Mutant is a document with one change.
type Mutant struct {
	// Change describes the change and its path, for a failing test.
	Change string
	// Document is the changed document.
	Document []byte
}

// Mutants changes a document in one place at a time, in every way that a schema restricts: each
// member removed, in another case, or added; each value of another type, or null; each limit met
// and exceeded by one; each allowed value, and others; arrays that are empty, longer, or hold
// duplicates. Most mutants are invalid, some are valid: they serve to compare validators. The facts
// of several schemas are combined, and no document is repeated.
func Mutants(doc any, schemaDocs ...any) iter.Seq[Mutant] {
	return func(yield func(Mutant) bool) {
		seen := map[string]bool{}
		for _, schema := range schemaDocs {
			m := mutator{schemas: schemas{schema}}
			if !m.value([]any{schema}, doc, "", func(change string, v any) bool {
				b, err := json.Marshal(v)
				if err != nil || seen[string(b)] {
					return err == nil
				}
				seen[string(b)] = true
				return yield(Mutant{change, b})
			}) {
				return
			}
		}
	}
}

type mutator struct{ schemas }

// emit receives a changed value; false ends the walk.
type emit func(change string, v any) bool

func (m mutator) value(judges []any, v any, at string, out emit) bool {
	var parts []map[string]any
	for _, j := range judges {
		parts = append(parts, m.parts(j)...)
	}
	for _, other := range otherTypes() {
		if !out(fmt.Sprintf("%s: %.40v instead", at, other), other) {
			return false
		}
	}
	for _, p := range parts {
		for _, other := range listedValues(p) {
			if !out(fmt.Sprintf("%s: the listed %.40v", at, other), other) {
				return false
			}
		}
	}
	switch v := v.(type) {
	case map[string]any:
		return m.object(parts, v, at, out)
	case []any:
		return m.array(parts, v, at, out)
	case string:
		return m.text(parts, v, at, out)
	case json.Number:
		return m.number(parts, at, out)
	}
	return true
}

// otherTypes returns values of every type, and look-alikes of some.
func otherTypes() []any {
	return []any{
		nil, true, false, json.Number("0"), json.Number("1"), json.Number("1.0"), json.Number("-1"), json.Number("0.5"), json.Number("1e2"), json.Number("9007199254740993"),
		"", "x", "true", "null", "1",
		[]any{},
		[]any{nil},
		[]any{"x"},
		map[string]any{},
		map[string]any{"x": nil},
	}
}

// listedValues returns the values of enum and const, and similar ones.
func listedValues(p map[string]any) []any {
	list, _ := p["enum"].([]any)
	if c, ok := p["const"]; ok {
		list = append(slices.Clip(list), c)
	}
	out := slices.Clone(list)
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, strings.ToUpper(s), s+" ", " "+s, s+"x", s[:max(len(s)-1, 0)], s+"\u200b")
		}
	}
	return out
}

func (m mutator) object(parts []map[string]any, v map[string]any, at string, out emit) bool {
	changed := func(change string, edit func(map[string]any)) bool {
		other := maps.Clone(v)
		edit(other)
		return out(change, other)
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		here := at + "/" + name
		if !changed(here+": left out", func(o map[string]any) { delete(o, name) }) {
			return false
		}
		if upper := strings.ToUpper(name); upper != name {
			if !changed(here+": in capitals", func(o map[string]any) { delete(o, name); o[upper] = v[name] }) ||
				!changed(here+": in capitals, too", func(o map[string]any) { o[upper] = v[name] }) {
				return false
			}
		}
		if !m.value(m.member(parts, name), v[name], here, func(change string, with any) bool {
			return changed(change, func(o map[string]any) { o[name] = with })
		}) {
			return false
		}
	}
	strange := map[string]bool{"": true, "__proto__": true, "x-host-acme-thing": true}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(names(parts))), []string{"unknown"}, slices.Sorted(maps.Keys(strange))) {
		if _, there := v[name]; there {
			continue
		}
		values := []any{"x", nil, json.Number("1"), map[string]any{}, []any{}}
		if strange[name] {
			values = values[:1] // no schema distinguishes these names from "unknown"
		}
		for _, more := range values {
			if !changed(fmt.Sprintf("%s/%s: added, %v", at, name, more), func(o map[string]any) { o[name] = more }) {
				return false
			}
		}
	}
	return true
}

func (m mutator) array(parts []map[string]any, v []any, at string, out emit) bool {
	var items []any
	for _, p := range parts {
		if sub, ok := p["items"]; ok {
			items = append(items, sub)
		}
		for _, k := range []string{"minItems", "maxItems"} {
			bound, ok := whole(p, k)
			if !ok || len(v) == 0 {
				continue
			}
			for _, n := range []int{bound - 1, bound, bound + 1} {
				if n >= 0 && !out(fmt.Sprintf("%s: %d items", at, n), repeated(v, n)) {
					return false
				}
			}
		}
	}
	for i, item := range v {
		here := fmt.Sprintf("%s/%d", at, i)
		if !out(here+": left out", slices.Delete(slices.Clone(v), i, i+1)) || !out(here+": twice", append(slices.Clip(v), item)) {
			return false
		}
		if !m.value(items, item, here, func(change string, with any) bool {
			other := slices.Clone(v)
			other[i] = with
			return out(change, other)
		}) {
			return false
		}
	}
	return true
}

// repeated returns n items, those of v repeated; strings and numbers are made unique, so that the
// number of items decides.
func repeated(v []any, n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = v[i%len(v)]
		if i < len(v) {
			continue
		}
		switch item := out[i].(type) {
		case string:
			out[i] = fmt.Sprintf("%s%d", item, i)
		case json.Number:
			if k, err := item.Int64(); err == nil {
				out[i] = json.Number(fmt.Sprint(k + int64(i)))
			}
		}
	}
	return out
}

func (m mutator) text(parts []map[string]any, v, at string, out emit) bool {
	if !slices.ContainsFunc(parts, judgesText) {
		return out(at+": another text", v+"é\n")
	}
	texts := []string{v + "\n", "\n" + v, v + "\x00", strings.ToUpper(v), v + "/", v + ".", v + "é", v + " " + v, "../" + v, "http://x.example/ü", "https://", "urn:x", "/x", "x:y z", "%zz", "1.2.3", "1.2", "01.2.3", "1.2.3-rc.1+b"}
	for _, p := range parts {
		for _, k := range []string{"minLength", "maxLength"} {
			bound, ok := whole(p, k)
			if !ok {
				continue
			}
			// The limit counts characters, not bytes and not UTF-16 units.
			for n := max(bound-1, 0); n <= bound+1; n++ {
				texts = append(texts, strings.Repeat("x", n), strings.Repeat("é", n), strings.Repeat("😀", n), stretched(v, n))
			}
		}
	}
	for _, other := range texts {
		if !out(fmt.Sprintf("%s: a text of %d bytes, %.20q", at, len(other), other), other) {
			return false
		}
	}
	return true
}

// judgesText reports whether a schema restricts a string.
func judgesText(p map[string]any) bool {
	return slices.ContainsFunc([]string{"pattern", "format", "minLength", "maxLength", "enum", "const"}, func(k string) bool { return p[k] != nil })
}

// stretched repeats the last letter of v, so that a pattern may still match.
func stretched(v string, n int) string {
	if v == "" || n <= len(v) {
		return v[:min(n, len(v))]
	}
	return v + strings.Repeat(v[len(v)-1:], n-len(v))
}

func (m mutator) number(parts []map[string]any, at string, out emit) bool {
	numbers := []string{"-0", "2.0", "3e0", "0.1e1", "1.5", "-1.5", "1e-400", "12345678901234567890", "1e30"}
	for _, p := range parts {
		for _, k := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
			if bound, ok := whole(p, k); ok {
				for n := bound - 1; n <= bound+1; n++ {
					numbers = append(numbers, fmt.Sprint(n), fmt.Sprintf("%d.0", n), fmt.Sprintf("%d.0000000000000001", n))
				}
			}
		}
	}
	for _, n := range numbers {
		if !out(at+": the number "+n, json.Number(n)) {
			return false
		}
	}
	return true
}
