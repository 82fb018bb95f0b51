package runstate

import (
	"time"

	"waybill.dev/waybill/protocol/wire"
)

// active reports whether a node of the status proceeds without external input.
func (s NodeStatus) active() bool {
	return s == NodeRunning || s == NodeRetrying || s == NodeStopped
}

// move changes a node's status.
func (s *State) move(n *Node, to NodeStatus) {
	s.endDelay(n)
	if n.Status.active() {
		s.busy--
	}
	if n.Status = to; to.active() {
		s.busy++
	}
}

// endDelay ends a node's delay.
func (s *State) endDelay(n *Node) {
	if n.rests {
		n.rests = false
		s.resting--
	}
}

// pause applies run.paused. An immediate pause cuts running attempts, except of nodes that wait for
// their child.
func (s *State) pause(e wire.Event, p payload) {
	s.Status, s.PausedAt, s.Pausing = wire.StatusPaused, e.Timestamp, nil
	if p.DrainPolicy != string(wire.DrainNot) {
		return
	}
	for _, n := range s.Nodes {
		if n.Status == NodeRunning && n.Child == nil {
			n.Since, n.DelayMs = e.Timestamp, 0
			s.move(n, NodeStopped)
		}
	}
}

// updateWaiting sets whether a live run waits: it does if a node is suspended and no node is
// active. The node suspended first determines the status (OpenWOP host contract §3.1).
func (s *State) updateWaiting(at string) {
	if s.Status == wire.StatusRunning || s.Status.Suspended() {
		s.Status = wire.StatusRunning
		if w := s.Waits(); w != nil && s.busy == 0 {
			s.Status = w.Kind.Status()
		}
	}
	accumulate(&s.idle, &s.idleSince, s.Status.Waiting(), at)
	accumulate(&s.rest, &s.restSince, s.Status == wire.StatusRunning && s.busy > 0 && s.busy == s.resting, at)
}

// accumulate adds up the time in which a condition holds; since is set while it does.
func accumulate(total *time.Duration, since *string, holds bool, at string) {
	switch {
	case holds && *since == "":
		*since = at
	case !holds && *since != "":
		from, err1 := time.Parse(wire.TimeLayout, *since)
		until, err2 := time.Parse(wire.TimeLayout, at)
		if err1 == nil && err2 == nil && until.After(from) {
			*total += until.Sub(from)
		}
		*since = ""
	}
}

// firstOpen returns the oldest open question; nil if none.
func (s *State) firstOpen() *Interrupt {
	for _, i := range s.Interrupts {
		if s.Asks(i) {
			return i
		}
	}
	return nil
}
