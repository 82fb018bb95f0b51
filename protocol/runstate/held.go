package runstate

// setHeld records whether the effect of running nodes is held. Other nodes are unchanged.
func (s *State) setHeld(ids []string, held bool) {
	for _, id := range ids {
		if n := s.Nodes[id]; n != nil && n.Status == NodeRunning {
			n.Held = held
		}
	}
}

// holdAll marks the nodes that are running at the end of a fork's copied history: the fork itself
// has not sent anything for them.
func (s *State) holdAll() {
	for _, n := range s.Nodes {
		if n.Status == NodeRunning {
			n.Held = true
		}
	}
}
