package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/internal/projection"
	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

const outputSchema = "outputSchema"

// maxSchemas and maxSchemaText limit the distinct schemas checked in a definition, because some
// schemas are slow to check. The creation of a run checks all.
const (
	maxSchemas    = 64
	maxSchemaText = 64 << 10
)

// reviewSchemas returns invalid schemas and schemas that a node's provider does not support
// (OpenWOP envelope contract §20). For a node without a provider it warns about all vendors that a
// run or the host may choose. Models without schema enforcement get the schema as text, so they are
// exempt.
func (c Catalog) reviewSchemas(
	def *workflow.Definition, models *catalogue.Catalogue,
) (found, warned, minor []workflow.Problem) {
	if models == nil {
		models = catalogue.Builtin()
	}
	all := schemaCache{seen: map[string]*checkedSchema{}, left: maxSchemaText}
	for i, n := range def.Nodes {
		t := c[n.TypeID]
		if t.Executes() != TypeStructuredOutput {
			continue
		}
		cfg, err := configMembers(t.Configure(n.Config))
		text := cfg[outputSchema]
		if err != nil || text == nil {
			continue // the node fails when it starts
		}
		own, _ := configMembers(n.Config)
		asked, _ := strictjson.String(cfg["provider"])
		model, _ := strictjson.String(cfg["model"])
		at := locateSchema(i, own)
		s := all.check(text)
		switch {
		case s == nil:
		case s.compileError != "":
			found = append(found, at.newProblem(schema.RuleNotSchema, s.compilePath, s.compileError))
		case asked != "":
			if v := dialectOf(models, asked, model); v != "" {
				found = append(found, at.projectionProblems(s, v)...)
				notable, other := at.rewrites(s, v)
				warned, minor = append(warned, notable...), append(minor, other...)
			}
		case own[outputSchema] != nil: // the schema of its type belongs to the pack
			warned = append(warned, at.projectionProblems(s, projection.Builtin()...)...)
			notable, other := at.rewrites(s, projection.Builtin()...)
			warned, minor = append(warned, notable...), append(minor, other...)
		}
	}
	return found, warned, minor
}

// Rewrites lists the rules of schemas that reach a model in another form, although it answers in the
// shape of the schema. Review warns about the others.
func (c Catalog) Rewrites(def *workflow.Definition, models *catalogue.Catalogue) []workflow.Problem {
	_, _, minor := c.reviewSchemas(def, models)
	return minor
}

// dialectOf returns the dialect of a provider's model: the one in the catalogue, else the vendor's of
// that name; empty for models that get the schema as it is written, or as text.
func dialectOf(models *catalogue.Catalogue, provider, model string) projection.Vendor {
	e, known := models.Lookup(provider, model)
	v := projection.Vendor(provider)
	switch {
	case known && e.StructuredOutput == catalogue.StructuredNone:
		return ""
	case known && e.SchemaDialect != "":
		v = projection.Vendor(e.SchemaDialect)
	case !slices.Contains(projection.Builtin(), v):
		return ""
	}
	if v == projection.AsWritten {
		return ""
	}
	return v
}

// schemaLocation is the path that is reported for a problem with a node's schema.
type schemaLocation struct {
	path string
	// inConfig means that the path is the schema itself, not the provider or type that conflicts
	// with it.
	inConfig bool
}

func locateSchema(i int, own map[string]json.RawMessage) schemaLocation {
	switch {
	case own[outputSchema] != nil:
		return schemaLocation{nodePath(i) + "/config/" + outputSchema, true}
	case own["provider"] != nil:
		return schemaLocation{nodePath(i) + "/config/provider", false}
	default:
		return schemaLocation{nodePath(i) + "/typeId", false}
	}
}

func (at schemaLocation) newProblem(rule, below, message string) workflow.Problem {
	if at.inConfig {
		return workflow.Problem{Path: at.path + below, Rule: rule, Message: message}
	}
	return workflow.Problem{
		Path:    at.path,
		Rule:    rule,
		Message: fmt.Sprintf("the type's schema, at %q: %s", below, message),
	}
}

// projectionProblems lists why vendors do not support a schema. Vendors with the same problem share
// one entry.
func (at schemaLocation) projectionProblems(s *checkedSchema, vendors ...projection.Vendor) (out []workflow.Problem) {
	var different []projection.Problem // without the vendor
	whose := map[projection.Problem][]string{}
	for _, v := range vendors {
		for _, p := range s.resultFor(v).problems {
			p.Vendor = ""
			if whose[p] == nil {
				different = append(different, p)
			}
			whose[p] = append(whose[p], string(v))
		}
	}
	for _, p := range different {
		out = append(out, at.newProblem(p.Rule, p.Path, fmt.Sprintf("not supported by %s: %s", strings.Join(whose[p], " and "), p.Message)))
	}
	return out
}

// rewrites lists what models answer in another shape, and what else is sent in another form.
func (at schemaLocation) rewrites(s *checkedSchema, vendors ...projection.Vendor) (notable, minor []workflow.Problem) {
	var all []projection.Problem
	for _, v := range vendors {
		all = append(all, s.resultFor(v).rewrites...)
	}
	for _, r := range projection.Group(all, false) {
		p := at.newProblem(r.Rule, r.Paths[0], r.String())
		if r.Notable() {
			notable = append(notable, p)
		} else {
			minor = append(minor, p)
		}
	}
	return notable, minor
}

// schemaCache holds the distinct schemas of a definition; nodes often share one.
type schemaCache struct {
	seen map[string]*checkedSchema
	left int // bytes
}

// checkedSchema is the result of checking a schema.
type checkedSchema struct {
	text         json.RawMessage
	compileError string // why the schema is invalid
	compilePath  string // where
	results      map[projection.Vendor]projectionResult
}

// projectionResult is what a vendor refuses of a schema, and what is rewritten for it.
type projectionResult struct{ problems, rewrites []projection.Problem }

// check checks a schema once; nil if there are too many.
func (s *schemaCache) check(text json.RawMessage) *checkedSchema {
	if l := s.seen[string(text)]; l != nil {
		return l
	}
	if len(text) > s.left || len(s.seen) == maxSchemas {
		return nil
	}
	s.left -= len(text)
	l := &checkedSchema{text: text, results: map[projection.Vendor]projectionResult{}}
	if _, err := schema.Compile(outputSchema, text); err != nil {
		l.compileError = err.Error()
		if e, ok := errors.AsType[*schema.Error](err); ok {
			l.compilePath, l.compileError = e.Path, e.Explain(text)
		}
	}
	s.seen[string(text)] = l
	return l
}

// resultFor projects the schema for a vendor.
func (l *checkedSchema) resultFor(v projection.Vendor) projectionResult {
	r, known := l.results[v]
	if !known {
		var p *projection.Projection
		if p, r.problems = projection.Compile(l.text, v); p != nil {
			r.rewrites = p.Rewrites()
		}
		l.results[v] = r
	}
	return r
}
