package sim

import (
	"errors"
	"fmt"

	"waybill.dev/waybill/protocol/wire"
)

// usage is what is known of the calls of a node's model.
type usage struct {
	// called are those that went out, told those whose usage is in the log, and begun those
	// that were when the node's attempt began.
	called, told, begun int
}

func (h *history) usageOf(node string) *usage {
	u := h.usages[node]
	if u == nil {
		u = &usage{}
		h.usages[node] = u
	}
	return u
}

// tellsUsage: the usage of a call is told once, and before that which its envelope causes
// (OpenWOP envelope contract §14.5, §19.1). Of a call that somebody was lost with it need not
// be told.
func (h *history) tellsUsage(e wire.Event) error {
	u := h.usageOf(e.NodeID)
	switch e.Type {
	case wire.EventNodeStarted:
		u.begun = u.told
	case wire.EventProviderUsage:
		u.told++
		counted := u.called > 0 && !h.continued && h.record.Fork == nil // canned answers cost no call
		if counted && u.told > u.called {
			return fmt.Errorf("usage is told of %d calls, and %d went out", u.told, u.called)
		}
	case wire.EventArtifactCreated:
		if u.told == u.begun {
			return errors.New("an envelope comes before the usage of its call")
		}
	}
	return nil
}
