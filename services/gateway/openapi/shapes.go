package openapi

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// shapeFiles are the schemas of documents that are neither messages nor Go types within reach.
//
//go:embed shapes/*.yaml
var shapeFiles embed.FS

// shapes is the content of the files. A $ref in them is the name of a component.
type shapes struct {
	Schemas  map[string]object `yaml:"schemas"`
	Variants map[string]union  `yaml:"variants"`
	// Members are the schemas of members that their messages type as open JSON or as strings, by the
	// full name of the field.
	Members map[string]object `yaml:"members"`
	// Required are members and parameters that a handler requires, although their messages do not;
	// Optional those that it does not require.
	Required []string `yaml:"required"`
	Optional []string `yaml:"optional"`
	// Bounds are keywords that are added to the schemas of fields.
	Bounds map[string]object `yaml:"bounds"`
	// Path are the descriptions and schemas of path parameters.
	Path map[string]object `yaml:"path"`
	// Details are the schemas of details of errors, by code; Codes the codes of operations, by id.
	Details map[string]object `yaml:"details"`
	Codes   map[string][]any  `yaml:"codes"`
	// Tags are the texts of tags.
	Tags     map[string]string  `yaml:"tags"`
	Examples map[string]example `yaml:"examples"`
}

// example is a request and an answer of an operation.
type example struct {
	Body   any `yaml:"body"`
	Answer any `yaml:"answer"`
}

// codes returns the codes of an operation. Lists may contain lists.
func (s *shapes) codes(id string) (out []string) {
	var flatten func(v any)
	flatten = func(v any) {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case []any:
			for _, m := range v {
				flatten(m)
			}
		}
	}
	flatten(s.Codes[id])
	return out
}

// union is a discriminated union: objects with the same members, one of which names the variant and
// another one has the variant's own type.
type union struct {
	Description   string `yaml:"description"`
	Discriminator string `yaml:"discriminator"`
	// Member is the member with the variant's own type.
	Member string `yaml:"member"`
	// Name ends the names of the variants, Payloads those of their own types.
	Name     string `yaml:"name"`
	Payloads string `yaml:"payloads"`
	Base     object `yaml:"base"`
	// By has the variants' own types, by the value of the discriminator.
	By map[string]object `yaml:"by"`
}

// readShapes reads the files once. Its result is shared and must not be changed.
var readShapes = sync.OnceValues(func() (*shapes, error) {
	files, err := shapeFiles.ReadDir("shapes")
	if err != nil {
		return nil, err
	}
	all := &shapes{
		Schemas: map[string]object{}, Variants: map[string]union{}, Members: map[string]object{}, Bounds: map[string]object{},
		Path: map[string]object{}, Details: map[string]object{}, Codes: map[string][]any{}, Tags: map[string]string{}, Examples: map[string]example{},
	}
	for _, f := range files {
		text, err := shapeFiles.ReadFile("shapes/" + f.Name())
		if err != nil {
			return nil, err
		}
		var s shapes
		if err := yaml.Unmarshal(text, &s); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		maps.Copy(all.Schemas, s.Schemas)
		maps.Copy(all.Variants, s.Variants)
		maps.Copy(all.Members, s.Members)
		maps.Copy(all.Bounds, s.Bounds)
		maps.Copy(all.Path, s.Path)
		maps.Copy(all.Details, s.Details)
		maps.Copy(all.Codes, s.Codes)
		maps.Copy(all.Tags, s.Tags)
		maps.Copy(all.Examples, s.Examples)
		all.Required = append(all.Required, s.Required...)
		all.Optional = append(all.Optional, s.Optional...)
	}
	return all, nil
})

// addShapes adds the components of the files.
func (b *builder) addShapes(s *shapes) {
	for _, name := range slices.Sorted(maps.Keys(s.Schemas)) {
		b.define(name, resolved(s.Schemas[name]).(object))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Variants)) {
		b.addUnion(name, s.Variants[name])
	}
}

// addUnion adds a union, its variants and their own types.
func (b *builder) addUnion(name string, u union) {
	base := resolved(u.Base).(object)
	shared, _ := base["properties"].(object)
	required, _ := base["required"].([]any)
	required = slices.Concat(required, []any{u.Discriminator, u.Member})
	refs, mapping := []object{}, object{}
	for _, value := range slices.Sorted(maps.Keys(u.By)) {
		own := resolved(u.By[value]).(object)
		if own["$ref"] == nil {
			own["type"] = "object"
			own = b.define(camel(value)+u.Payloads, own)
		}
		props := maps.Clone(shared)
		props[u.Discriminator] = object{"type": "string", "enum": []string{value}}
		props[u.Member] = own
		variant := b.define(camel(value)+u.Name, object{"type": "object", "required": required, "properties": props})
		refs = append(refs, variant)
		mapping[value] = variant["$ref"]
	}
	b.define(name, object{
		"description":   u.Description,
		"oneOf":         refs,
		"discriminator": object{"propertyName": u.Discriminator, "mapping": mapping},
	})
}

// camel converts a value such as "run.started" or "external-event" to a part of a name.
func camel(value string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(".-_", r) }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// ref refers to a component.
func ref(name string) object { return object{"$ref": refPrefix + name} }

const refPrefix = "#/components/schemas/"

// resolved returns a copy of a schema of the files with whole references.
func resolved(v any) any {
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		for name, m := range v {
			if to, ok := m.(string); ok && name == "$ref" {
				m = refPrefix + to
			}
			out[name] = resolved(m)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, m := range v {
			out[i] = resolved(m)
		}
		return out
	default:
		return v
	}
}
