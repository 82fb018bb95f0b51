package sample

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// generator writes one document for a schema. One goroutine uses it, once.
type generator struct {
	out    bytes.Buffer
	source source
	fuel   int // steps left
	told   int // texts made; each has the next sentence
}

const (
	// maxFuel limits the steps of one answer, so that no schema keeps the host busy.
	maxFuel = 100_000
	// roomy is the depth down to which optional members are made. Below it, values are as shallow
	// as their schemas allow, which ends recursive documents.
	roomy = 5
	// maxDepth limits the document, and chains of references.
	maxDepth = 32
)

// place is where in the document a value goes.
type place struct {
	path  string // JSON pointer
	name  string // of the member, or of the array that has the item
	depth int
	try   int             // attempts at an item that differs from the others
	used  map[string]bool // the items that it must differ from; nil allows all
}

func (g *generator) spend(steps int) error {
	if g.fuel -= steps; g.fuel < 0 {
		return unfit("the schema asks for a document that is too large")
	}
	return nil
}

func text(v any) string { return string(strictjson.RenderPlain(v)) }

// want is what a value must satisfy: schemas that all hold, and the unions of which a branch is
// still to be chosen.
type want struct {
	all    []*jsonschema.Schema
	unions [][]*jsonschema.Schema
}

// add adds schemas, their references and their allOf.
func (g *generator) add(w *want, depth int, schemas ...*jsonschema.Schema) error {
	for _, s := range schemas {
		if err := g.spend(1); err != nil {
			return err
		}
		if depth > maxDepth || isFalse(s) {
			return unfit("no document satisfies the schema")
		}
		parts := s.AllOf
		if s.Ref != nil {
			parts = append([]*jsonschema.Schema{s.Ref}, parts...)
		}
		if err := g.add(w, depth+1, parts...); err != nil {
			return err
		}
		for _, union := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
			if len(union) > 0 {
				w.unions = append(w.unions, union)
			}
		}
		w.all = append(w.all, s)
	}
	return nil
}

func isFalse(s *jsonschema.Schema) bool { return s.Bool != nil && !*s.Bool }

func (w want) holds(v any) bool {
	return !slices.ContainsFunc(w.all, func(s *jsonschema.Schema) bool { return s.Validate(v) != nil })
}

// limits returns the tightest limits of the schemas.
func (w want) limits(of func(*jsonschema.Schema) (low, high *int)) (least, most int) {
	most = 1 << 40
	for _, s := range w.all {
		low, high := of(s)
		if low != nil {
			least = max(least, *low)
		}
		if high != nil {
			most = min(most, *high)
		}
	}
	return least, most
}

var allKinds = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// kinds returns the types that a value may have: the best one first, the shallowest one last.
func (w want) kinds() []string {
	list, typed := slices.Clone(allKinds), false
	for _, s := range w.all {
		if s.Types != nil {
			allowed := s.Types.ToStrings()
			list = slices.DeleteFunc(list, func(k string) bool {
				return !slices.Contains(allowed, k) && (k != "integer" || !slices.Contains(allowed, "number"))
			})
			typed = true
		}
	}
	if !typed && !slices.ContainsFunc(w.all, func(s *jsonschema.Schema) bool { return len(s.Properties)+len(s.Required) > 0 }) {
		return []string{"string"} // satisfies the keywords of every other type
	}
	if len(list) == 0 {
		return []string{"none"}
	}
	return list
}

// value writes a value that satisfies all the schemas.
func (g *generator) value(at place, schemas ...*jsonschema.Schema) error {
	if err := g.spend(1); err != nil {
		return err
	}
	if at.depth > maxDepth {
		return unfit("the schema asks for a document without end")
	}
	if g.out.Len() > provider.MaxAnswerBytes {
		return tooLong()
	}
	var w want
	if err := g.add(&w, 0, schemas...); err != nil {
		return err
	}
	return g.settle(w, at, 0)
}

// settle chooses a branch of each union, and writes the value. If a branch fails, it tries the next.
func (g *generator) settle(w want, at place, settled int) error {
	if len(w.unions) == 0 {
		return g.write(w, at)
	}
	err := error(unfit("no branch satisfies the schema of /" + at.path))
	start := g.out.Len()
	for _, branch := range g.order(w.unions[0], at) {
		with := want{all: slices.Clone(w.all), unions: slices.Clone(w.unions[1:])}
		if err = g.add(&with, settled, branch); err == nil {
			err = g.settle(with, at, settled+1)
		}
		if err == nil {
			return nil
		}
		g.out.Truncate(start)
	}
	return err
}

// write writes a value without unions.
func (g *generator) write(w want, at place) error {
	for _, s := range w.all {
		if list := values(s); list != nil {
			return g.pick(w, at, list)
		}
	}
	kinds := w.kinds()
	kind := kinds[0]
	if at.depth > roomy {
		kind = kinds[len(kinds)-1]
	}
	switch kind {
	case "object":
		return g.object(w, at)
	case "array":
		return g.array(w, at)
	case "string":
		return g.text(w, at)
	case "integer", "number":
		return g.number(w, at, kind == "integer")
	case "boolean":
		said := g.source.score([]option{w.option(at.name)})[0] > 0
		g.out.WriteString(strconv.FormatBool(said != (at.try%2 == 1)))
		return nil
	case "null":
		g.out.WriteString("null")
		return nil
	default:
		return unfit("no value satisfies the schema of /" + at.path)
	}
}
