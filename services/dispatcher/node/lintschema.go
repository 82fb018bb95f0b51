package node

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/projection"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/catalogue"
)

const outputSchema = "outputSchema"

// maxSchemas and maxSchemaText bound the different schemas of a definition that are looked at, which
// takes a while for those that are written to take long. The creation of a run looks at all.
const (
	maxSchemas    = 64
	maxSchemaText = 64 << 10
)

// reviewSchemas finds what keeps nodes from ever being answered: a schema that is none, or one that
// the vendor a node names cannot be told (OpenWOP envelope contract §20). Where a node names no
// provider, it warns of the vendors that a run, or the host, may name. A model that no schema can hold
// is told it in words.
func (c Catalog) reviewSchemas(def *workflow.Definition, models *catalogue.Catalogue) (found, warned []workflow.Problem) {
	if models == nil {
		models = catalogue.Builtin()
	}
	all := schemas{seen: map[string]*looked{}, left: maxSchemaText}
	for i, n := range def.Nodes {
		t := c[n.TypeID]
		if t.Executes() != TypeStructuredOutput {
			continue
		}
		cfg, err := settings(t.Configure(n.Config))
		text := cfg[outputSchema]
		if err != nil || text == nil {
			continue // the node says it when it starts
		}
		own, _ := settings(n.Config)
		asked, _ := strictjson.String(cfg["provider"])
		model, _ := strictjson.String(cfg["model"])
		at := placeOf(i, own)
		switch s := all.at(text); {
		case s == nil:
		case s.none != "":
			found = append(found, at.problem(schema.RuleNotSchema, "", s.none))
		case asked != "":
			if v := projection.Vendor(asked); slices.Contains(projection.Vendors(), v) && !models.Unheld(asked, model) {
				found = append(found, at.unsayable(s, v)...)
			}
		case own[outputSchema] != nil: // that of its type is the pack's
			warned = append(warned, at.unsayable(s, projection.Vendors()...)...)
		}
	}
	return found, warned
}

// place is where the author of a node wrote what is wrong with its schema.
type place struct {
	path string
	// within says that the schema itself is there, and not only what does not go with it.
	within bool
}

func placeOf(i int, own map[string]json.RawMessage) place {
	switch {
	case own[outputSchema] != nil:
		return place{nodePath(i) + "/config/" + outputSchema, true}
	case own["provider"] != nil:
		return place{nodePath(i) + "/config/provider", false}
	default:
		return place{nodePath(i) + "/typeId", false}
	}
}

func (at place) problem(rule, below, message string) workflow.Problem {
	if at.within {
		return workflow.Problem{Path: at.path + below, Rule: rule, Message: message}
	}
	return workflow.Problem{Path: at.path, Rule: rule, Message: fmt.Sprintf("the type's schema, at %q: %s", below, message)}
}

// unsayable lists where vendors cannot be told a schema, by the rules of projections; what they have
// in common is one problem.
func (at place) unsayable(s *looked, vendors ...projection.Vendor) (out []workflow.Problem) {
	var different []projection.Problem // without the vendor
	whose := map[projection.Problem][]string{}
	for _, v := range vendors {
		for _, p := range s.projected(v) {
			p.Vendor = ""
			if whose[p] == nil {
				different = append(different, p)
			}
			whose[p] = append(whose[p], string(v))
		}
	}
	for _, p := range different {
		out = append(out, at.problem(p.Rule, p.Path, fmt.Sprintf("%s cannot be told this schema: %s", strings.Join(whose[p], " and "), p.Message)))
	}
	return out
}

// schemas are the different ones of a definition: nodes often share one.
type schemas struct {
	seen map[string]*looked
	left int // bytes
}

// looked is what was found out of a schema.
type looked struct {
	text json.RawMessage
	none string // why it is no schema
	of   map[projection.Vendor][]projection.Problem
}

// at looks at a schema, once; nil: there are too many.
func (s *schemas) at(text json.RawMessage) *looked {
	if l := s.seen[string(text)]; l != nil {
		return l
	}
	if len(text) > s.left || len(s.seen) == maxSchemas {
		return nil
	}
	s.left -= len(text)
	l := &looked{text: text, of: map[projection.Vendor][]projection.Problem{}}
	if _, err := schema.Compile(outputSchema, text); err != nil {
		l.none = err.Error()
	}
	s.seen[string(text)] = l
	return l
}

// projected says why a vendor cannot be told the schema.
func (l *looked) projected(v projection.Vendor) []projection.Problem {
	problems, known := l.of[v]
	if !known {
		_, problems = projection.Compile(l.text, v)
		l.of[v] = problems
	}
	return problems
}
