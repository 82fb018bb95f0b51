package sim

import (
	"errors"
	"fmt"

	"waybill.dev/waybill/protocol/wire"
)

// usage counts the calls of a node's model.
type usage struct {
	// called counts the calls sent, recorded those whose usage is in the log, begun those sent before
	// the node's current attempt.
	called, recorded, begun int
}

func (h *history) usageOf(node string) *usage {
	u := h.usages[node]
	if u == nil {
		u = &usage{}
		h.usages[node] = u
	}
	return u
}

// checkUsage checks that the usage of a call is recorded once, and before the events that its
// envelope causes (OpenWOP envelope contract §14.5, §19.1). The usage may be missing for a call
// that was lost with its process.
func (h *history) checkUsage(e wire.Event) error {
	u := h.usageOf(e.NodeID)
	switch e.Type {
	case wire.EventNodeStarted:
		u.begun = u.recorded
	case wire.EventProviderUsage:
		u.recorded++
		counted := u.called > 0 && !h.continued && h.record.Fork == nil // canned answers make no call
		if counted && u.recorded > u.called {
			return fmt.Errorf("usage is recorded for %d calls, but %d were made", u.recorded, u.called)
		}
	case wire.EventArtifactCreated:
		if u.recorded == u.begun {
			return errors.New("an envelope precedes the usage of its call")
		}
	}
	return nil
}
