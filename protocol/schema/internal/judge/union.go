package judge

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"waybill.dev/waybill/protocol/jsonpointer"
)

// prune selects, of the causes of a failed union, those of the branches that the value most likely
// means: with the right type and discriminator. If no discriminator matches, the message lists the
// allowed ones. ends holds the end of each branch's causes.
func (r *run) prune(s *jsonschema.Schema, from int, ends []int, keyword string) {
	if r.quiet > 0 {
		return
	}
	var branches [][]cause
	for start := from; len(ends) > 0; ends = ends[1:] {
		if ends[0] > start { // otherwise there were too many to record
			branches = append(branches, r.causes[start:ends[0]])
		}
		start = ends[0]
	}
	here := len(r.path)
	branches = preferring(branches, func(c *cause) bool { return len(c.at) == here && c.word() == "type" })
	isTag := func(c *cause) bool { return len(c.at) == here+1 && c.allowed != nil }
	branches = preferring(branches, isTag)

	all := slices.Concat(branches...)
	var tags []cause
	for i := range all {
		if isTag(&all[i]) {
			tags = append(tags, all[i])
		}
	}
	if len(branches) > 1 && len(tags) >= len(branches) && onePlace(tags) {
		all = []cause{tagged(s, tags, keyword)}
	}
	r.causes = append(r.causes[:from], all...)
}

// tagged returns the cause for discriminators that all differ from the value's.
func tagged(s *jsonschema.Schema, tags []cause, keyword string) cause {
	const enough = 64 // no more are listed
	c := cause{at: tags[0].at, schema: s, keyword: "enum", place: jsonpointer.OfFragment(s.Location) + jsonpointer.Of(keyword)}
	for _, t := range tags {
		if c.allowed = append(c.allowed, t.allowed[:min(len(t.allowed), enough)]...); len(c.allowed) > enough {
			break
		}
	}
	c.kind = &kind.Enum{Want: c.allowed}
	return c
}

// preferring drops the branches with a cause for which off is true, unless all have one.
func preferring(branches [][]cause, off func(*cause) bool) [][]cause {
	var on [][]cause
	for _, b := range branches {
		if !slices.ContainsFunc(b, func(c cause) bool { return off(&c) }) {
			on = append(on, b)
		}
	}
	if len(on) == 0 {
		return branches
	}
	return on
}

// onePlace reports whether all causes concern the same value.
func onePlace(causes []cause) bool {
	return !slices.ContainsFunc(causes, func(c cause) bool { return !slices.Equal(c.at, causes[0].at) })
}
