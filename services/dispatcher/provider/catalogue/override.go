package catalogue

import (
	"maps"
	"slices"
)

// With merges an override into the catalogue. Its models replace those of the same provider and
// model as a whole and take the names they claim. Its rules come first and its provider
// descriptions win. The later of the two dates applies. A nil override changes nothing.
func (c *Catalogue) With(override *Catalogue) *Catalogue {
	if override == nil {
		return c
	}
	over := override.doc
	out := document{
		Version: Version, AsOf: max(c.doc.AsOf, over.AsOf),
		Providers: map[string]Provider{},
		Models:    slices.Clone(over.Models), Rules: slices.Clone(over.Rules),
	}
	maps.Copy(out.Providers, c.doc.Providers)
	maps.Copy(out.Providers, over.Providers)
	for _, e := range c.doc.Models {
		if _, taken := override.byName[name{e.Provider, e.Model}]; taken {
			continue
		}
		e.Aliases, e.Snapshots = override.withoutTaken(e.Provider, e.Aliases), override.withoutTaken(e.Provider, e.Snapshots)
		out.Models = append(out.Models, e)
	}
	for _, r := range c.doc.Rules {
		if !slices.ContainsFunc(over.Rules, func(o Rule) bool { return o.key() == r.key() }) {
			out.Rules = append(out.Rules, r)
		}
	}
	return newCatalogue(out)
}

// withoutTaken removes the names that the catalogue uses for its own models.
func (c *Catalogue) withoutTaken(provider string, names []string) []string {
	var out []string
	for _, n := range names {
		if _, taken := c.byName[name{provider, n}]; !taken {
			out = append(out, n)
		}
	}
	return out
}

// key identifies a rule. A second rule with the same key would never apply.
func (r Rule) key() name { return name{r.Provider, r.Match} }
