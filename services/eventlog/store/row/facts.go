package row

import (
	"math"

	"waybill.dev/waybill/services/eventlog/store"
)

// facts adds the facts of a run. Each optional number follows its presence.
func (c *checksum) facts(f *store.Facts) {
	for _, s := range []string{f.Model, f.LastNode, f.WaitingSince, f.Inputs} {
		c.text(s)
	}
	for _, n := range []*int64{f.TokensIn, f.TokensOut, f.DurationMs} {
		c.optional(n)
	}
	if f.Cost == nil {
		c.optional(nil)
		return
	}
	bits := int64(math.Float64bits(*f.Cost)) //nolint:gosec // G115: the bits, not the number
	c.optional(&bits)
}

func (c *checksum) optional(n *int64) {
	if n == nil {
		c.number(0)
		return
	}
	c.number(1)
	c.number(*n)
}
