package seam

import (
	"slices"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/acceptor/accept"
)

// catalogue is the host's catalogue of kinds, with the changes of a request.
type catalogue struct {
	host      accept.Kinds
	supported *[]string      // nil means the host's
	floor     map[string]int // nil means the host's versions
}

// Find returns a universal or supported kind. A kind that only the request names has
// no schema, so all its payloads are valid.
func (c catalogue) Find(name string) (accept.Kind, bool) {
	k, known := c.host.Find(name)
	if c.supported != nil {
		if !wire.IsUniversal(name) && !slices.Contains(*c.supported, name) {
			return accept.Kind{}, false
		}
		if !known {
			k = accept.Kind{Name: name, Version: accept.Unlisted}
		}
	} else if !known {
		return accept.Kind{}, false
	}
	if c.floor != nil {
		v, listed := c.floor[name]
		if !listed {
			v = accept.Unlisted
		}
		k.Version = v
	}
	return k, true
}

// Names returns the supported kinds.
func (c catalogue) Names() []string {
	if c.supported != nil {
		return *c.supported
	}
	return c.host.Names()
}
