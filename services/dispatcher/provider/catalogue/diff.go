package catalogue

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind is the kind of a change.
type Kind string

// The kinds of changes.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
)

// Change is one difference between two catalogues.
type Change struct {
	Kind Kind `json:"kind"`
	// Subject is a model as PROVIDER/MODEL, "provider ID", "rule PATTERN" (or "rule
	// PATTERN of PROVIDER"), "rules" for their order, or "catalogue".
	Subject string `json:"subject"`
	// Member is the changed member, such as prices.input; empty if the whole subject was added or
	// removed.
	Member string `json:"member,omitempty"`
	// Old and New are the values; nil if absent.
	Old json.RawMessage `json:"old,omitempty"`
	New json.RawMessage `json:"new,omitempty"`
}

// String formats the change as one line.
func (c Change) String() string {
	if c.Member == "" {
		return fmt.Sprintf("%s: %s", c.Subject, c.Kind)
	}
	return fmt.Sprintf("%s: %s: %s -> %s", c.Subject, c.Member, formatValue(c.Old), formatValue(c.New))
}

func formatValue(v json.RawMessage) string {
	if v == nil {
		return "nothing"
	}
	return string(v)
}

// Diff returns the differences to another catalogue, sorted by subject and member. It is empty
// exactly if both have the same digest.
func Diff(old, changed *Catalogue) []Change {
	before, after := old.doc.subjects(), changed.doc.subjects()
	var out []Change
	for subject, was := range before {
		is, there := after[subject]
		if !there {
			out = append(out, Change{Kind: Removed, Subject: subject, Old: raw(was)})
			continue
		}
		out = append(out, compare(subject, was, is)...)
	}
	for subject, is := range after {
		if _, there := before[subject]; !there {
			out = append(out, Change{Kind: Added, Subject: subject, New: raw(is)})
		}
	}
	if was, is := common(old.doc.Rules, after), common(changed.doc.Rules, before); !slices.Equal(was, is) {
		out = append(out, Change{Changed, "rules", "order", raw(was), raw(is)})
	}
	slices.SortFunc(out, func(a, b Change) int {
		return cmp.Or(strings.Compare(a.Subject, b.Subject), strings.Compare(a.Member, b.Member))
	})
	return out
}

// subjects returns the parts of a document that are compared.
func (d document) subjects() map[string]any {
	out := map[string]any{"catalogue": map[string]any{"version": d.Version, "asOf": d.AsOf}}
	for id, p := range d.Providers {
		out["provider "+id] = p
	}
	for _, e := range d.Models {
		out[e.Name()] = e
	}
	for _, r := range d.Rules {
		out[r.subject()] = r
	}
	return out
}

func (r Rule) subject() string {
	if r.Provider == "" {
		return "rule " + r.Match
	}
	return "rule " + r.Match + " of " + r.Provider
}

// common returns the rules that are also in the other catalogue, in order.
func common(rules []Rule, other map[string]any) []string {
	out := []string{}
	for _, r := range rules {
		if _, there := other[r.subject()]; there {
			out = append(out, r.subject())
		}
	}
	return out
}

// compare returns the members that differ.
func compare(subject string, was, is any) []Change {
	before, after := members(was), members(is)
	var out []Change
	for _, m := range slices.Sorted(maps.Keys(before)) {
		if string(before[m]) != string(after[m]) {
			out = append(out, Change{Changed, subject, m, before[m], after[m]})
		}
	}
	for _, m := range slices.Sorted(maps.Keys(after)) {
		if _, there := before[m]; !there {
			out = append(out, Change{Changed, subject, m, nil, after[m]})
		}
	}
	return out
}

// members flattens a subject: a.b names member b of object a.
func members(subject any) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	var walk func(path string, v json.RawMessage)
	walk = func(path string, v json.RawMessage) {
		var object map[string]json.RawMessage
		if len(v) == 0 || v[0] != '{' || json.Unmarshal(v, &object) != nil {
			out[path] = v
			return
		}
		if len(object) == 0 && path != "" {
			out[path] = v // empty prices differ from no prices
		}
		for m, inner := range object {
			walk(strings.TrimPrefix(path+"."+m, "."), inner)
		}
	}
	walk("", raw(subject))
	return out
}

func raw(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil { // strings, numbers and lists always render
		panic("catalogue: " + err.Error())
	}
	return b
}
