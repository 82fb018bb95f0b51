package runstate

import (
	"time"

	"waybill.dev/waybill/protocol/wire"
)

// goesOn reports whether a node of the status does something without anybody outside.
func (s NodeStatus) goesOn() bool {
	return s == NodeRunning || s == NodeRetrying || s == NodeStopped
}

// move gives a node another status.
func (s *State) move(n *Node, to NodeStatus) {
	s.disturb(n)
	if n.Status.goesOn() {
		s.busy--
	}
	if n.Status = to; to.goesOn() {
		s.busy++
	}
}

// disturb ends a node's wait for its delay.
func (s *State) disturb(n *Node) {
	if n.rests {
		n.rests = false
		s.resting--
	}
}

// pause is the end of a pause's wait. An immediate one cuts what is at work; a node that
// waits for its child is not.
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

// settle says of a live run whether it waits: it does when a node is suspended and none
// goes on, and the first that was suspended says for what (OpenWOP host contract §3.1).
func (s *State) settle(at string) {
	if s.Status == wire.StatusRunning || s.Status.Suspended() {
		s.Status = wire.StatusRunning
		if w := s.Waits(); w != nil && s.busy == 0 {
			s.Status = w.Kind.Status()
		}
	}
	span(&s.idle, &s.idleSince, s.Status.Waiting(), at)
	span(&s.rest, &s.restSince, s.Status == wire.StatusRunning && s.busy > 0 && s.busy == s.resting, at)
}

// span adds up the time in which something holds; since is set while it does.
func span(total *time.Duration, since *string, holds bool, at string) {
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

// firstOpen is the question that has been open longest; nil: there is none.
func (s *State) firstOpen() *Interrupt {
	for _, i := range s.Interrupts {
		if s.Asks(i) {
			return i
		}
	}
	return nil
}
