package schema

import (
	"net/url"
	"strings"
)

// references resolves the references of a document. It supports pointers and anchors within the
// document; Compile rejects all others.
type references struct {
	positions []*position
	byName    map[string]int // "#/pointer" or "#anchor"
	ends      []int          // cache of resolve: 0 unknown, otherwise the index plus one
}

func newReferences(doc any) *references {
	r := &references{byName: map[string]int{}}
	for p := range walk(doc) {
		r.positions = append(r.positions, p)
		r.byName["#"+p.pointer()] = p.index
		for _, k := range []string{"$anchor", "$dynamicAnchor"} {
			if anchor, ok := p.object[k].(string); ok {
				r.byName["#"+anchor] = p.index
			}
		}
	}
	r.ends = make([]int, len(r.positions))
	return r
}

// index returns the position a reference leads to.
func (r *references) index(ref string) (int, bool) {
	if !strings.HasPrefix(ref, "#") {
		return 0, false
	}
	if plain, err := url.PathUnescape(ref); err == nil {
		ref = plain
	}
	i, ok := r.byName[ref]
	return i, ok
}

// resolve follows references from a position to the final schema. A dangling reference ends there;
// a circular one resolves to nothing.
func (r *references) resolve(i int) (end int, ok bool) {
	const circle = -1
	var way []int
	for end = i; r.ends[end] == 0; {
		way = append(way, end)
		r.ends[end] = circle // until its end is known
		ref, _ := r.positions[end].object["$ref"].(string)
		next, leads := r.index(ref)
		if !leads {
			r.ends[end] = end + 1
			break
		}
		end = next
	}
	for _, j := range way {
		r.ends[j] = r.ends[end]
	}
	return r.ends[i] - 1, r.ends[i] != circle
}

// unions lists the branches of each anyOf, by its position.
func (r *references) unions() map[int][]int {
	unions := map[int][]int{}
	for i, p := range r.positions {
		if p.keyword == "anyOf" {
			unions[p.up.index] = append(unions[p.up.index], i)
		}
	}
	return unions
}

// loops assigns each position the number of its strongly connected component in the graph of
// subschemas and references: two positions with the same number reach each other (Tarjan's
// algorithm).
func (r *references) loops() []int {
	t := tarjan{next: r.edges(), low: make([]int, len(r.positions)), order: make([]int, len(r.positions)), component: make([]int, len(r.positions))}
	for i := range r.positions {
		if t.order[i] == 0 {
			t.visit(i)
		}
	}
	return t.component
}

// edges lists, for each position, its subschemas and the target of its reference.
func (r *references) edges() [][]int {
	next := make([][]int, len(r.positions))
	for i, p := range r.positions {
		if p.up != nil {
			next[p.up.index] = append(next[p.up.index], i)
		}
		ref, _ := p.object["$ref"].(string)
		if j, ok := r.index(ref); ok {
			next[i] = append(next[i], j)
		}
	}
	return next
}

// tarjan finds strongly connected components; order counts from 1.
type tarjan struct {
	next       [][]int
	order, low []int
	component  []int // 0 while on the stack
	stack      []int
	visited    int
	components int
}

func (t *tarjan) visit(v int) {
	t.visited++
	t.order[v], t.low[v] = t.visited, t.visited
	t.stack = append(t.stack, v)
	for _, w := range t.next[v] {
		if t.order[w] == 0 {
			t.visit(w)
			t.low[v] = min(t.low[v], t.low[w])
		} else if t.component[w] == 0 {
			t.low[v] = min(t.low[v], t.order[w])
		}
	}
	if t.low[v] != t.order[v] {
		return
	}
	t.components++
	for {
		w := t.stack[len(t.stack)-1]
		t.stack = t.stack[:len(t.stack)-1]
		t.component[w] = t.components
		if w == v {
			return
		}
	}
}
