package projection

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/schema"
)

// LintFor applies a vendor's rules to a schema that will be sent to it. It runs the static check of
// protocol/schema, as far as it concerns the vendor, then checks every keyword against the table.
// No problems: the vendor accepts the schema.
func LintFor(v Vendor, doc []byte) []Problem {
	d, ok := DialectOf(v)
	if !ok {
		return []Problem{{Vendor: v, Rule: RuleVendor, Message: fmt.Sprintf("want one of %v", Vendors())}}
	}
	l := linter{dialect: d, places: map[string]bool{}}
	for _, f := range schema.Lint(doc, schema.LevelStrict) {
		if l.concerns(f) {
			l.report(f.Path, f.Rule, "%s", f.Message)
		}
		if f.Rule == schema.RuleNotSchema {
			return l.problems
		}
	}
	root := readSchema(doc)
	l.schema(root)
	l.limits(root)
	return sorted(l.problems)
}

// concerns reports whether a finding of the static check is a rule of the vendor, too. The table
// decides about keywords and limits.
func (l *linter) concerns(f schema.Finding) bool {
	d := l.dialect
	switch f.Rule {
	case schema.RuleNotSchema:
		return true
	case schema.RuleRootObject:
		return d.ObjectRoot
	case schema.RuleClosedObjects:
		return d.Closed
	case schema.RuleAllRequired:
		return d.AllRequired
	case schema.RuleRecursiveRef:
		return !d.Recursion
	case schema.RuleForbiddenKeyword, schema.RuleStringConstraint, schema.RuleNumberConstraint, schema.RuleArrayConstraint:
		return !d.says(f.Path[strings.LastIndexByte(f.Path, '/')+1:])
	}
	return false
}

type linter struct {
	dialect  Dialect
	problems []Problem
	places   map[string]bool // paths with a problem
}

func (l *linter) report(at, rule, format string, args ...any) {
	l.places[at] = true
	l.problems = append(l.problems, Problem{
		Vendor:  l.dialect.Vendor,
		Path:    at,
		Rule:    rule,
		Message: fmt.Sprintf(format, args...),
	})
}

// schema checks a schema and everything below it.
func (l *linter) schema(s *value) {
	if s.kind != objects {
		l.report(s.at, RuleType, "true and false are no schemas here; write a type")
		return
	}
	for _, f := range s.fields {
		switch at := s.at + pointer(f.name); {
		case l.places[at]:
		case !l.dialect.says(f.name):
			l.report(at, RuleKeyword, "%s does not take the keyword %s; leave it out", l.dialect.Vendor, f.name)
		case !l.dialect.takes(f):
			l.report(at, RuleValue, "%s does not take this %s; leave it out", l.dialect.Vendor, f.name)
		}
	}
	l.shape(s)
	if c := s.get("items"); c != nil {
		l.schema(c)
	}
	for _, k := range []string{"anyOf", "prefixItems"} {
		if c := s.get(k); c != nil {
			for _, item := range c.items {
				l.schema(item)
			}
		}
	}
	for _, k := range []string{"properties", "$defs"} {
		for _, f := range s.get(k).list() {
			if k == "properties" && l.dialect.Names != nil && !l.dialect.Names.MatchString(f.name) {
				l.report(f.value.at, RuleName, "%s wants names of properties to match %s", l.dialect.Vendor, l.dialect.Names)
			}
			l.schema(f.value)
		}
	}
}

// shape checks that a schema has a single type.
func (l *linter) shape(s *value) {
	t := s.get("type")
	switch {
	case t == nil && s.get("anyOf") == nil && s.get("$ref") == nil:
		l.report(s.at, RuleType, "want type, anyOf or $ref")
	case t != nil && t.kind == arrays && (len(t.items) != 2 || !slices.Contains(t.texts(), "null")):
		l.report(s.at+"/type", RuleType, `want one type, or one and "null"; write the others as anyOf`)
	}
	if e := s.get("enum"); e != nil {
		for i, v := range e.items {
			if v.kind == objects || v.kind == arrays {
				l.report(s.at+"/enum/"+strconv.Itoa(i), RuleEnum, "want a string, a number, a boolean or null")
			}
		}
	}
	if typeIs(t, "array") && s.get("items") == nil && s.get("prefixItems") == nil {
		l.report(s.at, RuleItems, "an array needs items")
	}
	if o := s.get("propertyOrdering"); o != nil && l.dialect.says("propertyOrdering") {
		l.ordering(s, o)
	}
}

func (l *linter) ordering(s, o *value) {
	var names []string
	for _, f := range s.get("properties").list() {
		names = append(names, f.name)
	}
	ordered := o.texts()
	slices.Sort(names)
	slices.Sort(ordered)
	if !slices.Equal(names, ordered) {
		l.report(s.at+"/propertyOrdering", RuleOrdering, "want each property once")
	}
}

func typeIs(t *value, name string) bool {
	return t != nil && (t.kind == strs && t.plain == name || slices.Contains(t.texts(), name))
}
