package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"testing/synctest"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/services/dispatcher/engine/lease"
)

// peersPort is a process's access to other dispatchers.
type peersPort struct{ p *process }

// Serve answers requests to a process id; see dispatcher.Peers.
func (q peersPort) Serve(id string, handle func([]byte) []byte) error {
	q.p.w.mu.Lock()
	defer q.p.w.mu.Unlock()
	q.p.w.peers[id] = func(data []byte) []byte {
		if q.p.gone() || q.p.lease() != id {
			return nil
		}
		return handle(data)
	}
	return nil
}

// Ask sends a request to a process id; see dispatcher.Peers. A dead or frozen process does not
// answer.
func (q peersPort) Ask(ctx context.Context, id string, data []byte) (answer []byte, err error) {
	err = q.p.call(ctx, atPeer, id+" "+string(data), func() error {
		q.p.w.mu.Lock()
		handle := q.p.w.peers[id]
		q.p.w.mu.Unlock()
		if handle == nil || q.p.w.silent(id) {
			return fmt.Errorf("%w: no dispatcher %s", runlog.ErrUnavailable, id)
		}
		answer = handle(data)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// gone reports whether the process was killed.
func (p *process) gone() bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.dead
}

// lease is the process id that holds the process's lease.
func (p *process) lease() string {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.id
}

// silent reports whether the process of an id is dead or frozen.
func (w *World) silent(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.procs {
		if p.id == id {
			return p.dead || p.frozen.After(time.Now())
		}
	}
	return true
}

// drainFor is how long a process that shuts down waits for its effects.
const drainFor = 10 * time.Second

// drain shuts a dispatcher down. Afterwards another one takes its slot.
func (w *World) drain(p *process) {
	if p.dispatcher == nil || p.draining {
		return
	}
	p.draining = true
	w.say("   %s shuts down", p.name)
	w.wg.Go(func() {
		ctx, cancel := context.WithTimeout(p.ctx, drainFor)
		defer cancel()
		p.dispatcher.Drain(ctx)
		_ = p.call(p.ctx, atDrained, p.name, func() error { // killed in between: another one has the slot
			w.kill(p)
			return nil
		})
	})
	synctest.Wait() // its consequences come before those of the next served call
}

// calling is a model call under way.
type calling struct {
	p *process
	// the lease that p held when the call began
	id string
}

// enters checks the rule of ownership: no model is called for a node while another dispatcher calls
// it and holds its lease. id is the lease that p held when it sent the call. A process frozen since
// then may have lost the lease. The scheduler calls it.
func (w *World) enters(p *process, id, key string) {
	w.mu.Lock()
	other, busy := w.underWay[key]
	w.underWay[key] = calling{p, id}
	dead := busy && other.p.dead
	w.mu.Unlock()
	if busy && other.p != p && !dead && p.held(id) && other.p.held(other.id) {
		w.violate(fmt.Errorf("ownership: %s is called by %s while %s calls it and holds its lease", key, p.name, other.p.name))
	}
	if err := w.within(); err != nil {
		w.violate(err)
	}
}

// leaves ends a call.
func (w *World) leaves(p *process, key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.underWay[key].p == p {
		delete(w.underWay, key)
	}
}

// held reports whether a lease is neither expired nor released.
func (p *process) held(id string) bool {
	e, err := p.leases.Get(p.w.background(), "dispatcher."+id)
	if err != nil {
		return false
	}
	var r lease.Record
	if err := json.Unmarshal(e.Value, &r); err != nil {
		return false
	}
	return r.State == lease.Held || r.State == lease.Draining
}
