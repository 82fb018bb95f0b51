package runstate

// setHeld records whether the effect of running nodes is held. Other nodes are unchanged.
func (s *State) setHeld(ids []string, held bool) {
	for _, id := range ids {
		switch n := s.Nodes[id]; {
		case n == nil || n.Status != NodeRunning:
		case held:
			n.Hold()
		default:
			n.Held = false
		}
	}
}

// Hold records that no call of the running attempt is in flight. All partial output so far is of calls
// that have ended.
func (n *Node) Hold() { n.Held, n.Chunked = true, false }

// holdAll marks the nodes that are running at the end of a fork's copied history: the fork itself
// has not sent anything for them.
func (s *State) holdAll() {
	for _, n := range s.Nodes {
		if n.Status == NodeRunning {
			n.Held = true
		}
	}
}
