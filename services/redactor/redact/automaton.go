package redact

import (
	"cmp"
	"slices"
)

// pattern is one text to find, and its replacement.
type pattern struct {
	text        string
	replacement string
	// keep marks a text that stays: a marker of an earlier redaction. It is matched, so
	// that nothing in it is found.
	keep bool
	// viewOnly marks a text that is not searched in the text itself.
	viewOnly bool
}

// automaton finds all patterns in one pass over the bytes, in time linear in the text (Aho
// and Corasick, "Efficient string matching", 1975). State 0 is the root. The edges of a
// state are adjacent in labels and targets, sorted, so that a state needs a few bytes per
// edge.
type automaton struct {
	patterns    []pattern
	root        [256]int32 // edges of state 0, as a table: most bytes of a text stay there
	first       []int32    // first[s] .. first[s+1] are the edges of state s
	labels      []byte
	targets     []int32
	fail        []int32      // state of the longest proper suffix that is also a prefix
	pending     []int32      // length of the longest suffix that may still become a match
	match       []int32      // longest pattern that ends in this state, or -1
	startFilter *startFilter // where no pattern starts
}

// newAutomaton builds the automaton. Of patterns with the same text the first one is used.
// Empty texts are ignored.
func newAutomaton(patterns []pattern) *automaton {
	t := newTrie(patterns)
	a := &automaton{
		patterns: patterns,
		fail:     make([]int32, len(t.nodes)), pending: make([]int32, len(t.nodes)), match: make([]int32, len(t.nodes)),
	}
	a.flatten(t)
	a.linkFailures(t)
	a.startFilter = newStartFilter(patterns)
	return a
}

// flatten copies the edges of the trie into the arrays.
func (a *automaton) flatten(t *trie) {
	a.first = make([]int32, 0, len(t.nodes)+1)
	a.labels = make([]byte, 0, len(t.nodes))
	a.targets = make([]int32, 0, len(t.nodes))
	for s := range t.nodes {
		n := &t.nodes[s]
		a.first = append(a.first, int32(len(a.labels))) //nolint:gosec // G115: bounded by Limits, far below 2^31
		a.match[s] = n.match
		slices.SortFunc(n.edges, func(x, y edge) int { return cmp.Compare(x.label, y.label) })
		for _, e := range n.edges {
			a.labels = append(a.labels, e.label)
			a.targets = append(a.targets, e.to)
			a.pending[e.to] = a.pending[s] + 1
			if s == 0 {
				a.root[e.label] = e.to
			}
		}
	}
	a.first = append(a.first, int32(len(a.labels))) //nolint:gosec // G115: as above
}

// linkFailures sets the failure states and inherited matches, breadth first, so that shorter
// prefixes come first.
func (a *automaton) linkFailures(t *trie) {
	queue := make([]int32, 0, len(t.nodes))
	for _, e := range t.nodes[0].edges {
		queue = append(queue, e.to)
	}
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		if a.match[s] < 0 {
			a.match[s] = a.match[a.fail[s]]
		}
		if len(t.nodes[s].edges) == 0 { // no longer pattern has this prefix
			a.pending[s] = a.pending[a.fail[s]]
		}
		for _, e := range t.nodes[s].edges {
			a.fail[e.to] = a.next(a.fail[s], e.label)
			queue = append(queue, e.to)
		}
	}
}

// next returns the state after byte c.
func (a *automaton) next(s int32, c byte) int32 {
	for s != 0 {
		if to, ok := a.edge(s, c); ok {
			return to
		}
		s = a.fail[s]
	}
	return a.root[c]
}

func (a *automaton) edge(s int32, c byte) (int32, bool) {
	from, to := a.first[s], a.first[s+1]
	if to-from == 1 { // most states have one edge
		return a.targets[from], a.labels[from] == c
	}
	i, ok := slices.BinarySearch(a.labels[from:to], c)
	if !ok {
		return 0, false
	}
	return a.targets[int(from)+i], true
}

// trie is the prefix tree of the patterns, for building the automaton.
type trie struct{ nodes []trieNode }

type trieNode struct {
	edges []edge
	match int32
}

type edge struct {
	label byte
	to    int32
}

func newTrie(patterns []pattern) *trie {
	t := &trie{nodes: []trieNode{{match: -1}}}
	for i, p := range patterns {
		if p.text == "" {
			continue
		}
		s := int32(0)
		for k := range len(p.text) {
			s = t.addEdge(s, p.text[k])
		}
		if t.nodes[s].match < 0 {
			t.nodes[s].match = int32(i) //nolint:gosec // G115: bounded by Limits
		}
	}
	return t
}

// addEdge follows the edge, or adds it.
func (t *trie) addEdge(s int32, c byte) int32 {
	for _, e := range t.nodes[s].edges {
		if e.label == c {
			return e.to
		}
	}
	to := int32(len(t.nodes)) //nolint:gosec // G115: bounded by Limits
	t.nodes = append(t.nodes, trieNode{match: -1})
	t.nodes[s].edges = append(t.nodes[s].edges, edge{label: c, to: to})
	return to
}
