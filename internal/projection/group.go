package projection

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Rewritten describes what is rewritten or refused of one schema, for one rule: the vendors, the
// rule, and the places in the source.
type Rewritten struct {
	Vendors []Vendor
	Rule    string
	Paths   []string
	// Message is that of the first place.
	Message string
	Refused bool
}

// Notable reports whether the model writes its answer in another shape than the schema has. Other
// rewrites only widen the schema.
func (r Rewritten) Notable() bool {
	return r.Refused || slices.Contains([]string{RewriteName, RewriteText, RewriteEntries, RewriteOthers, RewriteRoot}, r.Rule)
}

// String returns vendors, rule and places.
func (r Rewritten) String() string {
	const most = 8
	var paths []string
	for _, p := range r.Paths[:min(len(r.Paths), most)] {
		paths = append(paths, strconv.Quote(p))
	}
	if more := len(r.Paths) - most; more > 0 {
		paths = append(paths, fmt.Sprintf("%d more places", more))
	}
	verb := "rewritten"
	if r.Refused {
		verb = "refused"
	}
	return fmt.Sprintf("%s for %s at %s: %s", verb, joined(r.Vendors), strings.Join(paths, ", "), r.Message)
}

func joined(vs []Vendor) string {
	var names []string
	for _, v := range vs {
		names = append(names, string(v))
	}
	return strings.Join(names, ", ")
}

// Review compiles a schema for vendors, and returns what they refuse and what is rewritten for them.
func Review(source []byte, vendors ...Vendor) []Rewritten {
	var refused, rewritten []Problem
	bad := unfit(source) // the same for all vendors
	for _, v := range vendors {
		d, ok := DialectOf(v)
		if !ok {
			continue
		}
		if bad != nil {
			refused = append(refused, bad.of(v))
			continue
		}
		p, problems := project(source, d)
		refused = append(refused, problems...)
		if p != nil {
			rewritten = append(rewritten, p.Rewrites()...)
		}
	}
	return append(Group(refused, true), Group(rewritten, false)...)
}

// Group returns one entry for each rule and set of vendors, in the order of the problems.
func Group(problems []Problem, refused bool) []Rewritten {
	type place struct{ rule, path string }
	vendors := map[place][]Vendor{}
	var order []Problem // the first of each place
	for _, p := range problems {
		at := place{p.Rule, p.Path}
		if vendors[at] == nil {
			order = append(order, p)
		}
		if !slices.Contains(vendors[at], p.Vendor) {
			vendors[at] = append(vendors[at], p.Vendor)
		}
	}
	var out []Rewritten
	for _, p := range order {
		of := vendors[place{p.Rule, p.Path}]
		i := slices.IndexFunc(out, func(r Rewritten) bool { return r.Rule == p.Rule && slices.Equal(r.Vendors, of) })
		if i < 0 {
			i = len(out)
			out = append(out, Rewritten{Vendors: of, Rule: p.Rule, Message: p.Message, Refused: refused})
		}
		out[i].Paths = append(out[i].Paths, p.Path)
	}
	return out
}
