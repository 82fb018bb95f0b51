package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Rules of valid schemas that do not check what their author intends.
const (
	// RuleContradiction: keywords that no value satisfies together.
	RuleContradiction = "contradiction"
	// RuleIgnored: a keyword that does not apply to values of the type.
	RuleIgnored = "ignored-keyword"
	// RuleFormat: a format that JSON Schema does not have.
	RuleFormat = "unknown-format"
	// RuleExample: a default or an example that the schema does not allow.
	RuleExample = "example"
)

// maxCompared limits the parts of a schema that are compiled to check their values, because compiling
// costs most.
const maxCompared = 128

// maxSearched limits the names for which the closest one is searched among others.
const maxSearched = 32

// Mistakes lists the keywords of UnknownKeywords, and keywords that contradict each other or have no
// effect. Compile accepts such schemas. Findings are sorted by path. Warning marks those that may be
// intended, such as a branch that no value satisfies.
func Mistakes(doc []byte) []Finding {
	out := UnknownKeywords(doc)
	d, err := parse(doc, maxWeight)
	if err != nil || notASchema(d.value) != nil {
		return out // Compile reports it
	}
	m := mistakes{left: maxCompared}
	for p := range walk(d.value) {
		if p.object != nil {
			m.bounds(p)
			m.required(p)
			m.ignored(p)
			m.void(p)
			m.format(p)
			m.values(p)
		}
	}
	for _, f := range m.found {
		f.Path = d.source.Source(f.Path)
		out = append(out, f)
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// mistakes collects the findings of one document.
type mistakes struct {
	found []Finding
	left  int // parts that may still be compiled
	// searched counts the names that were compared with others.
	searched int
}

// branches are the keywords whose schemas need not hold.
var branches = []string{"anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}

// contradiction adds a contradiction that no value of a type satisfies; without a type, no value at all.
func (m *mistakes) contradiction(p *position, path, of, format string, args ...any) {
	f := Finding{Path: path, Rule: RuleContradiction, Message: fmt.Sprintf(format, args...)}
	for q := p; q.up != nil && !f.Warning; q = q.up {
		f.Warning = slices.Contains(branches, q.keyword)
	}
	f.Unsatisfiable = p.up == nil && (of == "" || onlyType(p.object, of))
	m.found = append(m.found, f)
}

// onlyType reports whether a schema allows values of one type only.
func onlyType(object map[string]any, want string) bool {
	types := typesOf(object)
	return len(types) > 0 && object["nullable"] != true && !slices.ContainsFunc(types, func(t string) bool {
		return t != want && (t != "integer" || want != "number")
	})
}

func (m *mistakes) add(path, rule string, warning bool, format string, args ...any) {
	m.found = append(m.found, Finding{Path: path, Rule: rule, Warning: warning, Message: fmt.Sprintf(format, args...)})
}

// boundPairs are the pairs of a lower and an upper bound. Of a strict pair, equal bounds leave no value.
var boundPairs = []struct {
	low, high string
	strict    bool
}{
	{"minLength", "maxLength", false},
	{"minItems", "maxItems", false},
	{"minProperties", "maxProperties", false},
	{"minContains", "maxContains", false},
	{"minimum", "maximum", false},
	{"minimum", "exclusiveMaximum", true},
	{"exclusiveMinimum", "maximum", true},
	{"exclusiveMinimum", "exclusiveMaximum", true},
}

func (m *mistakes) bounds(p *position) {
	for _, r := range boundPairs {
		low, has := number(p.object[r.low])
		high, too := number(p.object[r.high])
		if !has || !too {
			continue
		}
		if order := low.Cmp(high); order > 0 || order == 0 && r.strict {
			m.contradiction(p, p.pointer(r.low), cmp.Or(appliesTo[r.low], "array"), "no value satisfies %s %s and %s %s; lower %s, or raise %s",
				r.low, p.object[r.low], r.high, p.object[r.high], r.low, r.high)
		}
	}
}

func number(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return nil, false
	}
	return new(big.Rat).SetString(string(n)) // parse has limited its size
}

// required finds required members that the object cannot have, or that are probably misspelled.
func (m *mistakes) required(p *position) {
	properties, _ := p.object["properties"].(map[string]any)
	names, _ := p.object["required"].([]any)
	_, patterns := p.object["patternProperties"]
	closed := p.object["additionalProperties"] == false && !patterns
	required := textsOf(p.object["required"])
	var other []string // a name that is listed, too, is no misspelling of another one
	for _, known := range sortedKeys(properties) {
		if !required[known] {
			other = append(other, known)
		}
	}
	for i, v := range names {
		name, _ := v.(string)
		if member, named := properties[name]; named && member != false || !named && !closed && len(other) == 0 {
			continue
		}
		if m.searched++; m.searched > maxSearched {
			break
		}
		meant := ""
		if near := Near(name, other); near != "" {
			meant = "; did you mean " + near + "?"
		}
		at := p.pointer("required", strconv.Itoa(i))
		switch {
		case closed || properties[name] == false:
			m.contradiction(p, at, "object", "the object must and must not have the member %q%s add it to properties, or remove it from required", name, orSemicolon(meant))
		case meant != "":
			m.add(at, RuleContradiction, true, "properties does not have the member %q%s add it there, so that its value is checked", name, orSemicolon(meant))
		}
	}
	if most, ok := number(p.object["maxProperties"]); ok && most.Cmp(big.NewRat(int64(len(required)), 1)) < 0 {
		m.contradiction(p, p.pointer("maxProperties"), "object", "the object may have %s members and must have %d; raise it, or shorten required", p.object["maxProperties"], len(required))
	}
	if least, ok := number(p.object["minProperties"]); ok && closed && least.Cmp(big.NewRat(int64(len(properties)), 1)) > 0 {
		m.contradiction(p, p.pointer("minProperties"), "object", "the object must have %s members and may have %d; lower it, or add properties", p.object["minProperties"], len(properties))
	}
}

func orSemicolon(meant string) string {
	if meant == "" {
		return ";"
	}
	return meant
}

// appliesTo are the types of values that keywords check; values of other types always pass.
var appliesTo = map[string]string{
	"minLength": "string", "maxLength": "string", "pattern": "string",
	"minimum": "number", "maximum": "number", "exclusiveMinimum": "number", "exclusiveMaximum": "number", "multipleOf": "number",
	"minItems": "array", "maxItems": "array", "uniqueItems": "array", "items": "array", "prefixItems": "array", "contains": "array",
	"minProperties": "object", "maxProperties": "object", "properties": "object", "required": "object", "additionalProperties": "object",
	"patternProperties": "object", "propertyNames": "object", "dependentRequired": "object",
}

// sameFor are the keywords that limit the size of values, by type.
var sameFor = map[string][2]string{
	"string": {"minLength", "maxLength"}, "number": {"minimum", "maximum"}, "integer": {"minimum", "maximum"},
	"array": {"minItems", "maxItems"}, "object": {"minProperties", "maxProperties"},
}

// ignored finds keywords that check values of another type than the schema's.
func (m *mistakes) ignored(p *position) {
	types := typesOf(p.object)
	if len(types) == 0 {
		return
	}
	for _, keyword := range sortedKeys(p.object) {
		want := appliesTo[keyword]
		if want == "" || slices.Contains(types, want) || want == "number" && slices.Contains(types, "integer") {
			continue
		}
		remedy := "remove it, or add " + want + " to type"
		same, sized := sameFor[types[0]]
		switch {
		case sized && keyword == sameFor[want][0]:
			remedy = "did you mean " + same[0] + "?"
		case sized && keyword == sameFor[want][1]:
			remedy = "did you mean " + same[1] + "?"
		}
		m.add(p.pointer(keyword), RuleIgnored, true, "checks values of type %s only, and type is %s; %s", want, strings.Join(types, " or "), remedy)
	}
}

// typesOf lists the types that the keyword type allows; none without it.
func typesOf(object map[string]any) (out []string) {
	switch v := object["type"].(type) {
	case string:
		return []string{v}
	case []any:
		for _, item := range v {
			if text, ok := item.(string); ok {
				out = append(out, text)
			}
		}
	}
	return out
}

// formats are those of JSON Schema that are checked, and those of OpenAPI.
var formats = []string{
	"binary", "byte", "date", "date-time", "double", "duration", "email", "float", "hostname", "idn-email", "idn-hostname", "int32", "int64", "ipv4", "ipv6",
	"iri", "iri-reference", "json-pointer", "password", "period", "regex", "relative-json-pointer", "semver", "time", "uri", "uri-reference", "uri-template", "uuid",
}

// anyFormats are formats of OpenAPI that describe values of several types.
var anyFormats = []string{"binary", "byte", "double", "float", "int32", "int64", "password"}

// format finds formats of values of another type, and those that are probably misspelled. Names of an author's own are allowed: forms may
// use them.
func (m *mistakes) format(p *position) {
	name, ok := p.object["format"].(string)
	types := typesOf(p.object)
	if ok && len(types) > 0 && !slices.Contains(types, "string") && slices.Contains(formats, name) && !slices.Contains(anyFormats, name) {
		m.add(p.pointer("format"), RuleIgnored, true, "checks values of type string only, and type is %s; remove it, or set type to string", strings.Join(types, " or "))
	}
	if !ok || slices.Contains(formats, name) {
		return
	}
	if m.searched++; m.searched > maxSearched {
		return
	}
	near := Near(name, formats)
	if near == "" {
		return
	}
	m.add(p.pointer("format"), RuleFormat, true, "JSON Schema has no format %q, and checks nothing; did you mean %s?", name, near)
}

// values checks the values that the schema itself names against its other keywords.
func (m *mistakes) values(p *position) {
	if c, ok := p.object["const"]; ok {
		if why := m.part(p, "const").misfit(c); why != "" {
			m.contradiction(p, p.pointer("const"), "", "the schema does not allow its own value: %s; change one of the two", why)
		}
	}
	if list, ok := p.object["enum"].([]any); ok {
		m.enum(p, list)
	}
	_, preset := p.object["default"]
	examples, _ := p.object["examples"].([]any)
	if !preset && len(examples) == 0 {
		return
	}
	whole := m.part(p)
	if preset {
		m.example(p, whole, p.object["default"], "default")
	}
	for i, v := range examples {
		m.example(p, whole, v, "examples", strconv.Itoa(i))
	}
}

func (m *mistakes) enum(p *position, list []any) {
	if len(list) == 0 {
		m.contradiction(p, p.pointer("enum"), "", "lists no value, so none is allowed; add values, or remove it")
		return
	}
	rest, wrong := m.part(p, "enum"), map[int]string{}
	for i, v := range list {
		if why := rest.misfit(v); why != "" {
			wrong[i] = why
		}
	}
	if len(wrong) == len(list) {
		m.contradiction(p, p.pointer("enum"), "", "the schema allows none of its values: %s; change the values, or the other keyword", wrong[0])
		return
	}
	for _, i := range slices.Sorted(maps.Keys(wrong)) {
		m.add(p.pointer("enum", strconv.Itoa(i)), RuleContradiction, true, "the schema does not allow this value: %s; change one of the two", wrong[i])
	}
}

func (m *mistakes) example(p *position, whole *Schema, v any, below ...string) {
	if why := whole.misfit(v); why != "" {
		m.add(p.pointer(below...), RuleExample, true, "the schema does not allow this value: %s; change one of the two", why)
	}
}

// part compiles a schema without a keyword and without references. Of a schema with subschemas, only the
// type remains. It is nil if nothing remains.
func (m *mistakes) part(p *position, without ...string) *Schema {
	part, nested := map[string]any{}, len(p.children()) > 0
	for keyword, v := range p.object {
		drop := slices.Contains(without, keyword) || isAnnotation(keyword) || strings.HasPrefix(keyword, "$")
		if !drop && (!nested || keyword == "type") {
			part[keyword] = v
		}
	}
	if len(part) == 0 || m.left == 0 {
		return nil
	}
	m.left--
	doc, err := json.Marshal(part)
	if err != nil {
		return nil
	}
	s, err := Compile("part", doc)
	if err != nil {
		return nil
	}
	return s
}

// misfit returns why a schema does not allow a value; empty if it does, and for nil.
func (s *Schema) misfit(v any) string {
	if s == nil {
		return ""
	}
	doc, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	if found := s.Validate(doc); len(found) > 0 {
		return found[0].Message
	}
	return ""
}
