package sim

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/wire"
)

// promises are the answers that clients got. It is safe for concurrent use.
type promises struct {
	mu    *sync.Mutex // guards the fields below
	runs  map[string]wire.Status
	facts *[]fact
	errs  *[]error
}

func newPromises() promises {
	return promises{mu: &sync.Mutex{}, runs: map[string]wire.Status{}, facts: &[]fact{}, errs: &[]error{}}
}

// wrong records an answer that no client may get.
func (p promises) wrong(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*p.errs = append(*p.errs, err)
}

func (p promises) created(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs[id] += ""
}

func (p promises) knows(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.runs[id]
	return ok
}

// ended records that a client learned how a run ended. A cancellation that was not too late
// cancels.
func (p promises) ended(id string, status wire.Status, already bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if before := p.runs[id]; before != "" && before != status {
		*p.errs = append(*p.errs, fmt.Errorf("promise: %s was reported as %s, then as %s", id, before, status))
	}
	if !status.Terminal() || !already && status != wire.StatusCancelled {
		*p.errs = append(*p.errs, fmt.Errorf("promise: the cancelled %s was reported as %s", id, status))
	}
	p.runs[id] = status
}

// fact is an event that a client was informed of.
type fact struct {
	run   string
	event wire.EventType
	node  string
}

// happened records that a client was informed of an event.
func (p promises) happened(id string, e wire.EventType, node string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*p.facts = append(*p.facts, fact{id, e, node})
}

// decided records that a client's answer was accepted. A rejected gate fails.
func (p promises) decided(id, node, action string) {
	p.happened(id, wire.EventInterruptResolved, node)
	if action == "accept" {
		p.happened(id, wire.EventNodeCompleted, node)
	} else {
		p.happened(id, wire.EventNodeFailed, node)
	}
}

func (f fact) in(h *history) bool {
	if h != nil && f.event == wire.EventRunResumed && slices.ContainsFunc(h.frames, withdrawsPause) {
		return true // a pause that has not taken effect is withdrawn, without an event
	}
	return h != nil && slices.ContainsFunc(h.events, func(e wire.Event) bool { return e.Type == f.event && e.NodeID == f.node })
}

func withdrawsPause(f *frame.Frame) bool { return wire.ParseNote(f.Note).Unpause }

// kept checks the log against the promises.
func (p promises) kept(w *World) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := errors.Join(*p.errs...); err != nil {
		return err
	}
	for id, status := range p.runs {
		h := w.runs[id]
		switch {
		case h == nil:
			return fmt.Errorf("promise: %s was promised but is not in the log", id)
		case status != "" && h.state.Status != status:
			return fmt.Errorf("promise: %s was reported as %s but is %s", id, status, h.state.Status)
		}
	}
	for _, f := range *p.facts {
		if !f.in(w.runs[f.run]) {
			return fmt.Errorf("promise: %s was reported to have %s %s but has not", f.run, f.event, f.node)
		}
	}
	return nil
}
