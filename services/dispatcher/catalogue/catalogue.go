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

// Version is the form of the document that Parse reads.
const Version = 1

// document is a catalogue as it is written.
type document struct {
	Version   int                 `json:"version"`
	AsOf      string              `json:"asOf"`
	Providers map[string]Provider `json:"providers,omitempty"`
	Models    []Entry             `json:"models,omitempty"`
	Rules     []Rule              `json:"rules,omitempty"`
}

// Catalogue is what is known of models. It does not change, and neither must what
// its methods return; it is safe for concurrent use.
type Catalogue struct {
	doc    document
	byName map[name]int // into doc.Models
	digest func() string
}

// name is what a model is found by.
type name struct{ provider, model string }

//go:embed models.json
var builtinJSON []byte

// builtin is read on first use; the document is part of the binary and tests read
// it.
var builtin = sync.OnceValue(func() *Catalogue {
	c, err := Parse(builtinJSON)
	if err != nil {
		panic("catalogue: embedded data: " + err.Error())
	}
	return c
})

// Builtin is the catalogue that comes with the host.
func Builtin() *Catalogue { return builtin() }

// newCatalogue sorts the models and finds their names.
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

// sortLists puts lists in order whose order says nothing, so that it cannot tell two
// catalogues apart.
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

// sortCapabilities sorts capabilities as the protocol lists them, the host's own last.
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

// AsOf is the day that the figures are of.
func (c *Catalogue) AsOf() string { return c.doc.AsOf }

// Entries are the models that are listed, by provider and model.
func (c *Catalogue) Entries() []Entry { return slices.Clone(c.doc.Models) }

// Rules are those for models that are not listed; the first that matches speaks.
func (c *Catalogue) Rules() []Rule { return slices.Clone(c.doc.Rules) }

// Known are the models that the catalogue vouches for: those that are listed, and those that rules
// speak for which are bound to a provider, each such rule's by its pattern. A pattern is looked up as a name is, and found to have what its rule
// says unless an earlier rule speaks for all its models.
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

// Possible are the models that a provider may have: those that are known, and the patterns of all
// rules that would speak for others.
func (c *Catalogue) Possible(provider string) []modelgate.Model {
	out := slices.DeleteFunc(c.Known(), func(m modelgate.Model) bool { return m.Provider != provider })
	for _, r := range c.doc.Rules {
		if r.Provider == "" && c.ruleApplies(r, provider) {
			out = append(out, modelgate.Model{Provider: provider, Model: r.Match})
		}
	}
	return out
}

// Providers are those whose models are listed, by id.
func (c *Catalogue) Providers() map[string]Provider { return maps.Clone(c.doc.Providers) }

// Lookup finds a model by its name, an alias or a snapshot, and then by the rules.
// It is not ok if nothing is known of the model.
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

// ruleApplies reports whether a rule speaks for models of a provider: the models of a
// provider that is listed are listed too, or unknown.
func (c *Catalogue) ruleApplies(r Rule, provider string) bool {
	if r.Provider != "" {
		return r.Provider == provider
	}
	_, listed := c.doc.Providers[provider]
	return !listed
}

// plainName is a model's name as patterns have it: servers put the maker in front of it, with a
// slash, and differ in upper and lower case.
func plainName(model string) string {
	return strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
}

// matches reports whether the rule's pattern fits a plain name. Most differ before the first *, which
// is seen at once: each call of a model asks all rules.
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

// WithoutSchema reports whether a model is known to be held to no schema: it is told one in words.
func (c *Catalogue) WithoutSchema(provider, model string) bool {
	e, ok := c.Lookup(provider, model)
	return ok && e.StructuredOutput == StructuredNone
}
