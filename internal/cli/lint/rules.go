package lint

import (
	"errors"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/schema"
)

// allVendors selects every vendor.
const allVendors = "all"

// lint is the set of checks: the static check at a level, and the projection for each vendor.
type lint struct {
	level   schema.Level
	vendors []projection.Vendor
	// rewrites also lists what is sent in another form.
	rewrites bool
}

// vendorsNamed reads --vendor.
func vendorsNamed(name string) ([]projection.Vendor, error) {
	if name == allVendors {
		return projection.Builtin(), nil
	}
	known := projection.Vendors()
	if v := projection.Vendor(name); slices.Contains(known, v) {
		return []projection.Vendor{v}, nil
	}
	return nil, exit.Usagef("--vendor %q: want %s or one of %v", name, allVendors, known)
}

// schema returns the findings of one schema. A schema that does not compile is one, too.
func (l lint) schema(name string, doc []byte) []finding {
	var out []finding
	for _, f := range schema.Lint(doc, l.level) {
		out = append(out, finding{Path: f.Path, Rule: f.Rule, Vendors: f.Vendors, Message: f.Message})
	}
	if len(out) > 0 && out[0].Rule == schema.RuleNotSchema {
		return out
	}
	if wrong := notASchema(name, doc); wrong != nil {
		return append(out, *wrong)
	}
	for _, f := range schema.Mistakes(doc) {
		out = append(out, finding{Path: f.Path, Rule: f.Rule, Warning: f.Warning, Message: f.Message})
	}
	if c, err := schema.Convert(doc); err == nil && l.rewrites {
		for _, f := range c.Changes {
			out = append(out, finding{Path: f.Path, Rule: f.Rule, Warning: true, Message: f.Message})
		}
	}
	return append(out, l.projected(doc, out)...)
}

// notASchema returns why a schema does not compile; nil if it does.
func notASchema(name string, doc []byte) *finding {
	_, err := schema.Compile(name, doc)
	if err == nil {
		return nil
	}
	f := finding{Rule: schema.RuleNotSchema, Message: err.Error()}
	if e, ok := errors.AsType[*schema.Error](err); ok {
		f.Path, f.Message = e.Path, e.Explain(doc)
	}
	return &f
}

// projected returns the places that cannot be projected for a vendor, except those that the static
// check found. A problem for several vendors is one finding.
func (l lint) projected(doc []byte, known []finding) []finding {
	var out []finding
	for _, v := range l.vendors {
		projected, problems := projection.Compile(doc, v)
		warning := projected != nil
		if warning && l.rewrites {
			problems = projected.Rewrites()
		}
		for _, p := range problems {
			if slices.ContainsFunc(known, func(f finding) bool { return f.Rule == p.Rule && strings.HasPrefix(f.Path, p.Path) }) {
				continue
			}
			i := slices.IndexFunc(out, func(f finding) bool { return f.Path == p.Path && f.Rule == p.Rule && f.Message == p.Message })
			if i < 0 {
				i = len(out)
				out = append(out, finding{Path: p.Path, Rule: p.Rule, Warning: warning, Message: p.Message})
			}
			out[i].Vendors = append(out[i].Vendors, string(v))
		}
	}
	return out
}
