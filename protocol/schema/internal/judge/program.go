package judge

import (
	"net/url"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Program is a compiled schema, prepared before any document arrives. It is immutable and safe for
// concurrent use.
type Program struct {
	root  *jsonschema.Schema
	regex Regexes
	enums map[*jsonschema.Enum]*set
	tags  map[*jsonschema.Schema]tag // of branches of unions
	// anchors are the dynamic anchors of a schema's resource; nil unless a reference uses them.
	anchors map[*jsonschema.Schema]map[string]*jsonschema.Schema
	reached map[*jsonschema.Schema]bool
}

// Source is the document of a schema, as needed for dynamic references.
type Source struct {
	// URL is the URL the document was compiled under.
	URL string
	// Resources are the paths of subschemas with their own $id, Anchors those with a
	// $dynamicAnchor.
	Resources, Anchors []string
	// Compile returns the schema at a path.
	Compile func(place string) (*jsonschema.Schema, error)
	Regex   Regexes
}

// Regexes reports whether a text is a regular expression, without compiling it, and the cost of the
// check beyond the length, in units of about half a microsecond.
type Regexes interface {
	Size(text string) int
	Check(text string) error
}

// NewProgram prepares a schema. The second result names a schema of another dialect that it refers
// to.
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

// dialect is the only supported version of JSON Schema.
const dialect = 2020

// reach records all schemas that s refers to. dynamic: one of them uses dynamic anchors.
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

// subschemas adds the schemas that s applies or holds.
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

// findAnchors sets the dynamic anchors of each schema's resource.
func (p *Program) findAnchors(from Source) error {
	for _, place := range from.Anchors {
		s, err := from.Compile(place)
		if err != nil {
			return err
		}
		if !p.reached[s] { // reachable by its anchor only
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

// resourceOf returns the resource of a schema: the nearest enclosing schema with its own $id. Each
// meta-schema of the dialect is a resource.
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
