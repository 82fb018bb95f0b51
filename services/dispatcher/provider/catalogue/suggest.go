package catalogue

import (
	"cmp"
	"slices"
	"strings"

	"waybill.dev/waybill/protocol/suggest"
)

// Near suggests at most n names, as PROVIDER/MODEL, similar to an unknown model, the nearest first.
func (c *Catalogue) Near(provider, model string, n int) []string {
	type candidate struct {
		name string
		far  int
	}
	asked := strings.ToLower(provider + "/" + model)
	var all []candidate
	for _, e := range c.doc.Models {
		for _, known := range e.names() {
			far := suggest.Distance(asked, strings.ToLower(e.Provider+"/"+known))
			if e.Provider != provider { // also suggest the right model of another provider
				far = min(far, 1+suggest.Distance(strings.ToLower(model), strings.ToLower(known)))
			}
			if far <= max(2, len(model)/3) {
				all = append(all, candidate{e.Provider + "/" + known, far})
			}
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.far, b.far), strings.Compare(a.name, b.name))
	})
	out := make([]string, 0, n)
	for _, k := range all[:min(n, len(all))] {
		out = append(out, k.name)
	}
	return out
}
