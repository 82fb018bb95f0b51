package node

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/workflow"
)

// CheckPackConfig returns the problems of the config members that a pack sets for a type: those that
// neither the type nor the pack's own schema has, and values that the type cannot use. Members that
// authors set are not there yet, so none is missing. Paths are relative to the config.
func (c Catalog) CheckPackConfig(base string, own *schema.Schema, config map[string]json.RawMessage) []pack.Problem {
	t, ok := c[base]
	doc, err := json.Marshal(config)
	if !ok || err != nil {
		return nil
	}
	made := t
	made.ID, made.Made = "", &Made{Base: base, config: own}
	var found []workflow.Problem
	if own != nil {
		found = made.unknownToPack(doc)
	} else if s := t.Schema(); s != nil {
		found = unknownMembers(doc, memberNames(s))
	}
	if s := t.Schema(); s != nil {
		found = append(found, slices.DeleteFunc(workflow.Violations("", s, doc), func(p workflow.Problem) bool {
			return p.Rule == workflow.RuleUnknownMember && strings.Count(p.Path, "/") == 1 // found above
		})...)
	}
	if t.Lint != nil {
		found = append(found, t.Lint(doc)...)
	}
	var out []pack.Problem
	for _, p := range found {
		member, _, _ := strings.Cut(strings.TrimPrefix(p.Path, "/"), "/")
		if config[jsonpointer.Unescape(member)] == nil {
			continue // about members that authors set
		}
		if !slices.ContainsFunc(out, func(known pack.Problem) bool { return known.Path == p.Path }) {
			out = append(out, pack.Problem{Path: p.Path, Message: p.Message})
		}
	}
	if doc := config[outputSchema]; doc != nil {
		out = append(out, wrongKeywords(outputSchema, doc)...)
	}
	return out
}

// wrongKeywords returns why a member is not a schema, and its misspelled keywords.
func wrongKeywords(member string, doc json.RawMessage) []pack.Problem {
	if _, err := schema.Compile(member, doc); err != nil {
		path, message := "", err.Error()
		if e, ok := errors.AsType[*schema.Error](err); ok {
			path, message = e.Path, e.Explain(doc)
		}
		return []pack.Problem{{Path: "/" + member + path, Message: message}}
	}
	var out []pack.Problem
	for _, f := range schema.UnknownKeywords(doc) {
		if !f.Warning { // answers would not be checked for what the author wants
			out = append(out, pack.Problem{Path: "/" + member + f.Path, Message: f.Message})
		}
	}
	return out
}

// OutputsOf lists the output ports of a type; empty if they are unknown.
func (c Catalog) OutputsOf(id string) []string { return c[id].Outputs }
