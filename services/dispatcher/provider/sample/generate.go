package sample

import (
	"hash/fnv"
	"io"
	"slices"
	"strconv"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// generator makes a document for a schema out of a subject. It is used once, by
// one goroutine.
type generator struct {
	root   any
	source *source
	seed   uint64
	fuel   int // steps left
	room   int // characters left for texts that a schema wants long
	// told counts the strings made so far, so that each takes another sentence.
	told int
}

const (
	// maxFuel bounds the steps of one answer, so that no schema keeps the host busy.
	maxFuel = 100_000
	// roomy is the depth down to which optional members are made; below it a
	// recursive schema is brought to its end.
	roomy = 5
	// maxDepth is where a document is given up.
	maxDepth = 64
)

func newGenerator(root any, subject string, seed uint64) *generator {
	return &generator{root: root, source: newSource(subject), seed: seed, fuel: maxFuel, room: provider.MaxAnswerBytes}
}

// place is where in the document a value goes.
type place struct {
	path  string
	name  string // of the member, or of the array it is an item of
	depth int
	// try is 0, or counts the attempts at an item that differs from those before.
	try int
}

// String is the place as a JSON pointer.
func (p place) String() string {
	if p.path == "" {
		return "/"
	}
	return p.path
}

func (p place) member(name string) place {
	return place{path: p.path + "/" + name, name: name, depth: p.depth + 1, try: p.try}
}

func (p place) item(i int) place {
	return place{path: p.path + "/" + strconv.Itoa(i), name: p.name, depth: p.depth + 1}
}

// again is another try at the same place: what is open is decided otherwise.
func (p place) again(try int) place {
	p.try = try
	return p
}

func (g *generator) hash(at place) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, at.path+"#"+strconv.Itoa(at.try))
	return h.Sum64() ^ g.seed
}

// spend counts steps.
func (g *generator) spend(steps int) error {
	if g.fuel -= steps; g.fuel < 0 {
		return unfit("the schema asks for a document that is too large")
	}
	return nil
}

// value makes a value that satisfies all the schemas.
func (g *generator) value(schema any, at place) (any, error) {
	if at.depth > maxDepth {
		return nil, unfit("the schema asks for a document without end")
	}
	f, err := g.flatten(schema)
	if err != nil {
		return nil, err
	}
	for tries := 0; len(f.unions) > 0; tries++ {
		if tries > maxRefs {
			return nil, unfit("the schema refers to itself without end")
		}
		if err := g.settle(f, at); err != nil {
			return nil, err
		}
	}
	if f.never {
		return nil, unfit("nothing satisfies the schema of " + at.String())
	}
	if f.has("enum") {
		return g.pick(f, at)
	}
	return g.typed(f, at)
}

// pick takes a value of the enum.
func (g *generator) pick(f *flat, at place) (any, error) {
	if err := g.spend(len(f.list("enum")) / 4); err != nil { // each is read
		return nil, err
	}
	values := slices.DeleteFunc(slices.Clone(f.list("enum")), func(v any) bool { return !f.allows(v) })
	if len(values) == 0 {
		return nil, unfit("nothing satisfies the schema of " + at.String())
	}
	if said := slices.DeleteFunc(slices.Clone(values), func(v any) bool { return v == nil }); len(said) > 0 {
		values = said // null is for when there is nothing else
	}
	return values[g.choose(labels(values, f.text("title")+" "+f.text("description")), at)], nil
}

// typed makes a value of the schema's type.
func (g *generator) typed(f *flat, at place) (any, error) {
	if at.depth > roomy && f.has("type") && f.allows(nil) { // the end of a list
		return nil, nil
	}
	switch f.kind() {
	case "object":
		return g.object(f, at)
	case "array":
		return g.array(f, at)
	case "string":
		return g.text(f, at)
	case "integer":
		return g.number(f, at, true)
	case "number":
		return g.number(f, at, false)
	case "boolean":
		a := newAlternative(at.name)
		a.about(f.text("title")+" "+f.text("description"), weightAbout)
		return g.mentioned(a) != (at.try%2 == 1), nil
	default:
		return nil, nil
	}
}

// kind is the schema's type, the first that is not null of several, or what its
// other keywords make likely.
func (f *flat) kind() string {
	if f.has("type") {
		for _, t := range types(f.values["type"]) {
			if s, ok := t.(string); ok && s != "null" {
				return s
			}
		}
		return "null"
	}
	switch {
	case f.hasAny("properties", "required", "minProperties", "patternProperties", "additionalProperties"):
		return "object"
	case f.hasAny("items", "prefixItems", "minItems", "contains"):
		return "array"
	case !f.hasAny("minLength", "maxLength", "pattern", "format") && f.hasAny("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"):
		return "number"
	default:
		return "string"
	}
}

// text makes a string.
func (g *generator) text(f *flat, at place) (any, error) {
	low := f.count("minLength", 0)
	if g.room -= low; g.room < 0 {
		return nil, tooLong()
	}
	want := length{low: low, high: f.count("maxLength", 1<<40)}
	if s, ok := g.formatted(f.text("format"), want); ok {
		return s, nil
	}
	s := want.fit(g.sentence(at, f.text("title")+" "+f.text("description"), want))
	if at.try > 0 {
		s = want.fit(cut(strconv.Itoa(at.try)+" "+s, want.high))
	}
	p := f.text("pattern")
	if p == "" {
		return s, nil
	}
	const costly = 512 // to try what a pattern matches
	if err := g.spend(costly); err != nil {
		return nil, err
	}
	return g.matching(p, s, want), nil
}
