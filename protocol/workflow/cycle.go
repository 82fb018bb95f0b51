package workflow

import "strings"

const (
	// maxCycles limits the reported cycles; fixing one often fixes others.
	maxCycles = 8
	// maxNamed limits the nodes named per cycle.
	maxNamed = 16
)

// checkCycles finds cycles of edges without a loop node.
func checkCycles(d *Definition, found *problems) {
	s := search{edges: map[string][]int{}, state: map[string]mark{}, d: d}
	byID := map[string]*Node{}
	for i := range d.Nodes {
		byID[d.Nodes[i].ID] = &d.Nodes[i]
	}
	for i, e := range d.Edges {
		source, target := byID[e.SourceNodeID], byID[e.TargetNodeID]
		if source != nil && target != nil && !source.loops() && !target.loops() {
			s.edges[e.SourceNodeID] = append(s.edges[e.SourceNodeID], i)
		}
	}
	for i := range d.Nodes {
		s.visit(d.Nodes[i].ID, found)
	}
}

// mark is the state of a node in a depth-first search.
type mark int

const (
	unseen mark = iota
	open        // on the path from the start to here
	closed
)

// search is a depth-first search in document order, so it reports the same cycles each time.
type search struct {
	d      *Definition
	edges  map[string][]int // edge indexes by source node
	state  map[string]mark
	path   []string
	cycles int
}

func (s *search) visit(id string, found *problems) {
	if s.state[id] != unseen {
		return
	}
	s.state[id] = open
	s.path = append(s.path, id)
	for _, i := range s.edges[id] {
		target := s.d.Edges[i].TargetNodeID
		if s.state[target] == open && s.cycles < maxCycles {
			s.cycles++
			found.add(pointer("edges", i), RuleCycle, "the edge closes the cycle "+s.cycle(target)+
				"; remove it. core.loop repeats a calculation, and settings.maxRetries a call that fails")
		}
		s.visit(target, found)
	}
	s.path = s.path[:len(s.path)-1]
	s.state[id] = closed
}

// cycle returns the path from a node back to itself, as a->b->a.
func (s *search) cycle(from string) string {
	start := len(s.path) - 1
	for s.path[start] != from {
		start--
	}
	names := append([]string{}, s.path[start:]...)
	if len(names) > maxNamed {
		names = append(names[:maxNamed], "...")
	}
	return strings.Join(append(names, from), "->")
}
