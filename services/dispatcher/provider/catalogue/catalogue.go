package catalogue

import (
	"cmp"
	_ "embed"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"waybill.dev/waybill/protocol/modelgate"
)

// Version is the version of the document format that Parse reads.
const Version = 1

// document is a catalogue as JSON.
type document struct {
	Schema    string              `json:"$schema,omitempty"` // for editors
	Version   int                 `json:"version"`
	AsOf      string              `json:"asOf"`
	Providers map[string]Provider `json:"providers,omitempty"`
	Models    []Entry             `json:"models,omitempty"`
	Rules     []Rule              `json:"rules,omitempty"`
}

// Catalogue describes models. It is immutable, including what its methods return, and safe for
// concurrent use.
type Catalogue struct {
	doc    document
	byName map[name]int // into doc.Models
	digest func() string
}

// name identifies a model.
type name struct{ provider, model string }

//go:embed models.json
var builtinJSON []byte

// builtin is parsed on first use. The document is part of the binary and tests parse it.
var builtin = sync.OnceValue(func() *Catalogue {
	c, err := Parse(builtinJSON)
	if err != nil {
		panic("catalogue: embedded data: " + err.Error())
	}
	return c
})

// Builtin returns the catalogue that ships with the host.
func Builtin() *Catalogue { return builtin() }

// newCatalogue sorts and indexes the models.
func newCatalogue(doc document) *Catalogue {
	slices.SortFunc(doc.Models, byProviderAndModel)
	c := &Catalogue{doc: doc, byName: map[name]int{}}
	c.digest = sync.OnceValue(c.computeDigest)
	for i, e := range doc.Models {
		for _, n := range e.names() {
			c.byName[name{e.Provider, n}] = i
		}
	}
	return c
}

// sortLists sorts lists whose order has no meaning, so that it does not affect the digest.
func (d *document) sortLists() {
	for _, e := range d.Models {
		slices.Sort(e.Aliases)
		slices.Sort(e.Snapshots)
		sortCapabilities(e.Capabilities)
		sortCapabilities(e.Unsure)
	}
	for _, r := range d.Rules {
		sortCapabilities(r.Capabilities)
		sortCapabilities(r.Lacks)
	}
}

func byProviderAndModel(a, b Entry) int {
	return cmp.Or(strings.Compare(a.Provider, b.Provider), strings.Compare(a.Model, b.Model))
}

// sortCapabilities sorts capabilities in the protocol's order, the host's own last.
func sortCapabilities(ids []modelgate.Capability) {
	known := Capabilities()
	rank := func(id modelgate.Capability) int {
		if i := slices.Index(known, id); i >= 0 {
			return i
		}
		return len(known)
	}
	slices.SortFunc(ids, func(a, b modelgate.Capability) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})
}

// AsOf returns the date of the figures.
func (c *Catalogue) AsOf() string { return c.doc.AsOf }

// Entries returns the listed models, by provider and model.
func (c *Catalogue) Entries() []Entry { return slices.Clone(c.doc.Models) }

// Rules returns the rules for models that are not listed. The first match applies.
func (c *Catalogue) Rules() []Rule { return slices.Clone(c.doc.Rules) }

// Known returns the listed models and, for each rule bound to a provider, the rule's pattern as a
// model. Looking a pattern up like a name gives its rule's traits unless an earlier rule covers all
// its models.
func (c *Catalogue) Known() []modelgate.Model {
	var out []modelgate.Model
	for _, e := range c.doc.Models {
		out = append(out, modelgate.Model{Provider: e.Provider, Model: e.Model})
	}
	for _, r := range c.doc.Rules {
		if r.Provider != "" {
			out = append(out, modelgate.Model{Provider: r.Provider, Model: r.Match})
		}
	}
	return out
}

// Providers returns the providers with listed models, by id.
func (c *Catalogue) Providers() map[string]Provider { return maps.Clone(c.doc.Providers) }

// Lists reports whether the catalogue lists models of a provider.
func (c *Catalogue) Lists(provider string) bool {
	return slices.ContainsFunc(c.doc.Models, func(e Entry) bool { return e.Provider == provider })
}

// Lookup finds a model by name, alias or snapshot, then by the rules. ok is false for an unknown
// model.
func (c *Catalogue) Lookup(provider, model string) (Entry, bool) {
	if i, ok := c.byName[name{provider, model}]; ok {
		return c.doc.Models[i], true
	}
	plain := plainName(model)
	for _, r := range c.doc.Rules {
		if c.ruleApplies(r, provider) && r.matches(plain) {
			return r.entry(provider, model), true
		}
	}
	return Entry{}, false
}

// ruleApplies reports whether a rule applies to a provider. A rule without a provider does not
// apply to providers with listed models: their other models are unknown.
func (c *Catalogue) ruleApplies(r Rule, provider string) bool {
	if r.Provider != "" {
		return r.Provider == provider
	}
	_, listed := c.doc.Providers[provider]
	return !listed
}

// plainName returns a model's name as patterns match it: lower case, without the maker's prefix
// before the last slash.
func plainName(model string) string {
	return strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
}

// matches reports whether the rule's pattern matches a plain name. The fixed prefix before the
// first * is compared first, because each model call tries all rules.
func (r Rule) matches(plain string) bool {
	fixed, _, open := strings.Cut(r.Match, "*")
	if !open {
		return plain == r.Match
	}
	if !strings.HasPrefix(plain, fixed) {
		return false
	}
	ok, err := path.Match(r.Match, plain)
	return ok && err == nil
}

// Has reports whether a model has a capability, and whether that is known.
func (c *Catalogue) Has(m modelgate.Model, id modelgate.Capability) (has, known bool) {
	e, ok := c.Lookup(m.Provider, m.Model)
	if !ok {
		return false, false
	}
	return e.Has(id)
}

// WithoutSchema reports whether a model is known to have no schema enforcement: its schema is sent
// as text.
func (c *Catalogue) WithoutSchema(provider, model string) bool {
	e, ok := c.Lookup(provider, model)
	return ok && e.StructuredOutput == StructuredNone
}
