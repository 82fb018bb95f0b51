package model

import (
	"context"

	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
)

// open prepares recording the answer as it arrives, when the node wants that.
func (c *call) open(ctx context.Context) (emit func(provider.Delta) error, wait func() error, closeStream func(), err error) {
	if !c.streams() || c.told {
		return nil, func() error { return nil }, func() {}, nil
	}
	scrubber := c.deps.Scrubber(c.task.Tenant, c.task.RunID, c.task.CredentialRef != "")
	s, err := scrubber.Open(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	th := c.thinker(scrubber)
	st := newStreamer(c.journal, s, c.assets(), th, c.task.RunID, c.task.Input.NodeID, c.task.Trust)
	closeAll := func() {
		s.Close()
		th.close()
	}
	return func(d provider.Delta) error { return st.emit(ctx, d) }, st.wait, closeAll, nil
}

// streams reports whether the node shows its answer while it arrives: a prompt
// does unless told not to, a structured value only if told to.
func (c *call) streams() bool {
	if c.cfg.ExpectsStreaming != nil {
		return *c.cfg.ExpectsStreaming
	}
	return c.task.TypeID == node.TypeCallPrompt
}
