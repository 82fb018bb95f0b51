package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
)

// Unmatched lists the patterns of allowed models that match no model of the catalogue, for providers
// whose models it lists. Such models may exist: the catalogue can be older.
func (p *Policies) Unmatched(known *catalogue.Catalogue) (out strictjson.Problems) {
	for _, tenant := range slices.Sorted(maps.Keys(p.tenants)) {
		for _, provider := range slices.Sorted(maps.Keys(p.tenants[tenant])) {
			for i, pattern := range p.tenants[tenant][provider].AllowedModels {
				if provider != wildcard && !known.Lists(provider) || matchesKnown(pattern, provider, known) {
					continue
				}
				message := "no known model matches"
				if near := known.Near(provider, strings.TrimPrefix(strings.Trim(pattern, "*"), provider+"/"), 1); len(near) > 0 {
					message += "; did you mean " + strings.TrimPrefix(near[0], provider+"/") + "?"
				} else {
					message += "; waybill model list has the names"
				}
				out = append(out, strictjson.Problem{
					Path:    fmt.Sprintf("/tenants/%s/%s/allowedModels/%d", jsonpointer.Escape(tenant), jsonpointer.Escape(provider), i),
					Message: message,
				})
			}
		}
	}
	return out
}

// matchesKnown reports whether a pattern matches a model of a provider. Of a pattern, the text before its
// first special character counts for the rules of the catalogue, which are patterns, too.
func matchesKnown(pattern, provider string, known *catalogue.Catalogue) bool {
	fixed := pattern
	if i := strings.IndexAny(pattern, "*?[\\"); i >= 0 {
		fixed = pattern[:i]
	}
	if fixed == "" {
		return true // the whole list, or unclear
	}
	for _, e := range known.Entries() {
		if provider != wildcard && e.Provider != provider {
			continue
		}
		for _, name := range slices.Concat([]string{e.Model}, e.Aliases, e.Snapshots) {
			if ok, _ := matchModel(pattern, name); ok {
				return true
			}
		}
		if _, ok := known.Lookup(e.Provider, fixed); ok {
			return true
		}
	}
	return false
}
