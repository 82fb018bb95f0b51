package projection

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/schema"
)

// Projection is a schema in a vendor's dialect, with the conversion of answers. It is immutable and
// safe for concurrent use.
type Projection struct {
	schema json.RawMessage
	// root is nil for a schema that is sent as written.
	root     *node
	rewrites []Problem
	wrapped  bool // the schema applies to the member of a wrapping object
}

// wrapAs is the member that holds a value that is not an object, for vendors that require an object
// at the root.
const wrapAs = "value"

// Compile projects a JSON Schema for a vendor. The same source yields the same bytes. It returns
// either a projection or problems.
func Compile(source json.RawMessage, v Vendor) (*Projection, []Problem) {
	d, ok := DialectOf(v)
	if !ok {
		return nil, []Problem{{Vendor: v, Rule: RuleVendor, Message: fmt.Sprintf("want one of %v", Vendors())}}
	}
	if p := unfit(source); p != nil {
		return nil, []Problem{p.of(v)}
	}
	return project(source, d)
}

// project projects a schema that fits.
func project(source json.RawMessage, d Dialect) (*Projection, []Problem) {
	converted, _ := schema.Convert(source) // compiled before
	b := newBuilder(d, readSchema(converted.Document).known())
	b.source = converted.Source
	root := b.whole()
	if len(b.problems) > 0 {
		return nil, b.sorted(b.problems)
	}
	p := &Projection{root: root.end()}
	if d.ObjectRoot && (p.root.shape != shapeObject || p.root.nullable) {
		p.wrapped = true
		p.root = &node{
			shape: shapeObject, members: []member{newMember(wrapAs, root)},
			byName: map[string]int{wrapAs: 0}, bySent: map[string]int{wrapAs: 0},
		}
		b.rewrite("", nil, RewriteRoot, "sent as the member %q of an object", wrapAs)
	}
	w := write(d, p.root)
	for _, n := range w.never {
		b.problem(n.at, RuleNothingFits, "no value satisfies the schema here; leave it out, or allow one")
	}
	if w.large {
		b.problem("", RuleTooLarge, "written out, the schema has more than %d bytes; say what is common once, in $defs", maxWritten)
	}
	if len(b.problems) == 0 {
		b.hold(w)
	}
	if len(b.problems) > 0 {
		return nil, b.sorted(b.problems)
	}
	b.rewrites = slices.DeleteFunc(b.rewrites, func(r Problem) bool { return r.Rule == RewriteNull && w.left[r.Path] })
	p.schema, p.rewrites = w.out, b.sorted(b.rewrites)
	mark(p.root)
	return p, nil
}

// unfit returns why a schema cannot be projected at all.
func unfit(source json.RawMessage) *Problem {
	if len(source) > maxSource {
		return &Problem{
			Rule:    RuleTooLarge,
			Message: fmt.Sprintf("the schema has more than %d bytes; ask for less at a time, and say what is common once, in $defs", maxSource),
		}
	}
	_, err := schema.CompileWithin("source", source, maxWeight)
	e, refused := errors.AsType[*schema.Error](err)
	switch {
	case err == nil:
		return nil
	case !refused:
		return &Problem{Rule: schema.RuleNotSchema, Message: err.Error()}
	case e.TooLarge:
		return &Problem{Rule: RuleTooLarge, Path: e.Path, Message: "for a model, " + e.Reason + "; ask for less at a time"}
	}
	return &Problem{Rule: schema.RuleNotSchema, Path: e.Path, Message: e.Reason}
}

// whole returns the root node, with unions and references resolved.
func (b *builder) whole() *node {
	root := &def{at: ""}
	b.defs[""] = root
	root.node = b.build(b.places["#"])
	if len(b.problems) > 0 || b.endless() {
		return root.node
	}
	for _, n := range b.unions {
		b.settle(n)
	}
	return root.node
}

// hold applies the vendor's rules to the written schema, and maps findings to paths in the source.
func (b *builder) hold(w *writer) {
	for _, f := range LintFor(b.dialect.Vendor, w.out) {
		if f.Path = w.origin(f.Path); f.Rule == schema.RuleNotSchema { // only its size can be invalid
			f.Rule, f.Message = RuleTooLarge, "written out, "+f.Message
		}
		b.problems = append(b.problems, f)
	}
}

// origin returns the source path of a path in the projection.
func (w *writer) origin(at string) string {
	for {
		if from, ok := w.where[at]; ok {
			return from
		}
		i := strings.LastIndexByte(at, '/')
		if i < 0 {
			return ""
		}
		at = at[:i]
	}
}

// sorted sorts problems, with the paths of the source.
func (b *builder) sorted(ps []Problem) []Problem {
	for i := range ps {
		ps[i].Path = b.source(ps[i].Path)
	}
	return sorted(ps)
}

// Rewrites lists the parts of the schema that are sent in another form, some of them if there are
// many.
func (p *Projection) Rewrites() []Problem { return p.rewrites }

// Schema returns the vendor's schema. The caller must not change it.
func (p *Projection) Schema() json.RawMessage { return p.schema }
