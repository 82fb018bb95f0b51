package judge

import (
	"net/url"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Program is a compiled schema with what is known about it before any document
// comes. It is immutable and safe for concurrent use.
type Program struct {
	root  *jsonschema.Schema
	regex Regexes
	enums map[*jsonschema.Enum]*set
	tags  map[*jsonschema.Schema]tag // of branches of unions
	// anchors are the dynamic anchors of the resource a schema belongs to; nil unless
	// some reference asks for them.
	anchors map[*jsonschema.Schema]map[string]*jsonschema.Schema
	reached map[*jsonschema.Schema]bool
}

// Source is the document a schema was compiled from, as far as dynamic references
// ask for it.
type Source struct {
	// URL is the name the document was compiled under.
	URL string
	// Resources are the places of the document with an $id of their own, and Anchors
	// those with a $dynamicAnchor.
	Resources, Anchors []string
	// Compile gives the schema of a place.
	Compile func(place string) (*jsonschema.Schema, error)
	Regex   Regexes
}

// Regexes says whether a text is a regular expression, without compiling it, and what
// it takes to say so beyond its length, in some half a microsecond.
type Regexes interface {
	Size(text string) int
	Check(text string) error
}

// NewProgram looks a schema through. The second result names a schema in a dialect
// other than 2020-12 that it leads to.
func NewProgram(compiled *jsonschema.Schema, from Source) (p *Program, foreign string, err error) {
	p = &Program{root: compiled, regex: from.Regex, enums: map[*jsonschema.Enum]*set{}, tags: map[*jsonschema.Schema]tag{}, reached: map[*jsonschema.Schema]bool{}}
	dynamic := p.reach(compiled)
	if dynamic {
		if err := p.findAnchors(from); err != nil {
			return nil, "", err
		}
	}
	for s := range p.reached {
		if s.DraftVersion != dialect {
			return nil, s.Location, nil
		}
		if s.Enum != nil {
			p.enums[s.Enum] = newSet(s.Enum.Values)
		}
		p.tagsOf(s)
	}
	p.reached = nil
	return p, "", nil
}

// dialect is the only version of JSON Schema that is understood.
const dialect = 2020

// reach notes all schemas that s leads to; dynamic: one of them asks for dynamic
// anchors.
func (p *Program) reach(s *jsonschema.Schema) (dynamic bool) {
	queue := []*jsonschema.Schema{s}
	add := func(more ...*jsonschema.Schema) {
		for _, sub := range more {
			if sub != nil && !p.reached[sub] {
				p.reached[sub] = true
				queue = append(queue, sub)
			}
		}
	}
	p.reached[s] = true
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		if s.DynamicRef != nil {
			dynamic = dynamic || s.DynamicRef.Anchor != ""
			add(s.DynamicRef.Ref)
		}
		subschemas(s, add)
	}
	return dynamic
}

// subschemas gives what s applies or holds.
func subschemas(s *jsonschema.Schema, add func(...*jsonschema.Schema)) {
	rest, _ := s.AdditionalProperties.(*jsonschema.Schema)
	add(s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else, s.PropertyNames, rest, s.UnevaluatedProperties,
		s.Contains, s.Items2020, s.UnevaluatedItems, s.ContentSchema)
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems} {
		add(list...)
	}
	for _, named := range []map[string]*jsonschema.Schema{s.Properties, s.DependentSchemas} {
		for _, sub := range named {
			add(sub)
		}
	}
	for _, sub := range s.PatternProperties {
		add(sub)
	}
	for _, sub := range s.Dependencies {
		if sub, ok := sub.(*jsonschema.Schema); ok {
			add(sub)
		}
	}
}

// findAnchors tells which dynamic anchors are those of the resource of each schema.
func (p *Program) findAnchors(from Source) error {
	for _, place := range from.Anchors {
		s, err := from.Compile(place)
		if err != nil {
			return err
		}
		if !p.reached[s] { // known by its anchor alone
			p.reach(s)
		}
	}
	resources := map[string]bool{}
	for _, place := range from.Resources {
		resources[place] = true
	}
	byResource := map[string]map[string]*jsonschema.Schema{}
	p.anchors = map[*jsonschema.Schema]map[string]*jsonschema.Schema{}
	for s := range p.reached {
		resource := resourceOf(s, from.URL, resources)
		if byResource[resource] == nil {
			byResource[resource] = map[string]*jsonschema.Schema{}
		}
		if s.DynamicAnchor != "" {
			byResource[resource][s.DynamicAnchor] = s
		}
		p.anchors[s] = byResource[resource]
	}
	return nil
}

// resourceOf names the resource of a schema: the nearest place above it with an $id
// of its own. The dialect's meta-schemas are a resource each.
func resourceOf(s *jsonschema.Schema, document string, resources map[string]bool) string {
	at, place, _ := strings.Cut(s.Location, "#")
	if at != document {
		return at
	}
	if plain, err := url.PathUnescape(place); err == nil {
		place = plain
	}
	for place != "" && !resources[place] {
		place = place[:max(0, strings.LastIndexByte(place, '/'))]
	}
	return at + "#" + place
}
