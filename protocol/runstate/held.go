package runstate

// hold records for running nodes whether their effect is held. Other nodes keep their state.
func (s *State) hold(ids []string, held bool) {
	for _, id := range ids {
		if n := s.Nodes[id]; n != nil && n.Status == NodeRunning {
			n.Held = held
		}
	}
}

// holdAll marks the nodes that run where the copied history of a fork ends: the fork itself
// has sent nothing for them.
func (s *State) holdAll() {
	for _, n := range s.Nodes {
		if n.Status == NodeRunning {
			n.Held = true
		}
	}
}
