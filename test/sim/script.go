package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"waybill.dev/waybill/services/dispatcher/model"
)

// Script is a model's behaviour, call after call: each counted behaviour that many times, in this
// order, and then the end. A node therefore has the same result however often its model is called.
type Script struct {
	// Hangs are calls without an answer. Fails are retryable server errors; Late ones come after a
	// piece of the answer.
	Hangs, Fails int  `json:",omitempty"`
	Late         bool `json:",omitempty"`
	// Wrongs are answers that violate the schema, Cuts truncated answers.
	Wrongs, Cuts int     `json:",omitempty"`
	End          lastly  `json:",omitempty"`
	Pieces       int     `json:",omitempty"`
	Secret       bool    `json:",omitempty"`
	Think        float64 `json:",omitempty"` // seconds until the first piece
}

// lastly is the end of a script.
type lastly string

// The ends of scripts.
const (
	endsWell     lastly = ""
	endsRefused  lastly = "refused"
	endsRejected lastly = "rejected" // the server rejects the call
	endsDown     lastly = "down"     // the server fails every time
	endsWrong    lastly = "wrong"    // every answer violates the schema
)

func newScript(r *rand.Rand, k nodeKind) *Script {
	s := &Script{Pieces: 1 + r.IntN(4), Secret: r.IntN(4) == 0, Think: []float64{0, 0, 0.1, 2, 4}[r.IntN(5)]}
	switch r.IntN(8) {
	case 0:
		s.End = endsRefused
	case 1:
		s.End = []lastly{endsRejected, endsDown}[r.IntN(2)]
	case 2:
		s.Fails, s.Late = 1+r.IntN(2), r.IntN(2) == 0
	case 3:
		s.Hangs = 1
	case 4:
		if k == kindPrompt {
			break
		}
		if s.Wrongs = r.IntN(4); s.Wrongs > 2 { // more than a node may retry
			s.Wrongs, s.End = 0, endsWrong
		}
	case 5:
		if k != kindPrompt {
			s.Cuts = 1
		}
	}
	return s
}

// act is a model's behaviour in one call.
type act int

// The acts of models.
const (
	answers act = iota
	hangs
	breaks
	breaksLate
	rejects
	refuses
	errs
	cutOff
)

// act returns the behaviour of the nth call, from 0.
func (s *Script) act(n int) act {
	for _, phase := range []struct {
		act   act
		times int
	}{{hangs, s.Hangs}, {s.broken(), s.Fails}, {errs, s.Wrongs}, {cutOff, s.Cuts}} {
		if n < phase.times {
			return phase.act
		}
		n -= phase.times
	}
	return map[lastly]act{endsWell: answers, endsRefused: refuses, endsRejected: rejects, endsDown: breaks, endsWrong: errs}[s.End]
}

func (s *Script) broken() act {
	if s.Late {
		return breaksLate
	}
	return breaks
}

// calls is the number of calls before the end.
func (s *Script) calls() int { return s.Hangs + s.Fails + s.Wrongs + s.Cuts }

// text is the right answer.
func (n Node) text(i int) string {
	said := "an answer to " + nodeID(i)
	if n.Script.Secret {
		said += " with " + canary + " in it"
	}
	switch n.Kind {
	case kindValue:
		return fmt.Sprintf(`{"n":%d}`, i)
	case kindEnvelope:
		return fmt.Sprintf(`{"note":%q}`, said)
	default:
		return said
	}
}

// models finds the caller of each request. Requests do not name the run, but invocation ids derive
// from it.
type models struct {
	w     *World
	asks  map[string]asker // by invocation id
	calls map[string]int   // by run and node
	known []string         // runs whose ids are in asks, by peer
	spent bool             // all scripts are at their ends
	// asked lists the invocation ids of a story's model calls in order, by run and node.
	asked map[string][]string
}

// asker is the run and node of an invocation id.
type asker struct {
	run  string
	node string
	// nth is the node's index in a generated workflow.
	nth     int
	ordinal int
}

func newModels(w *World) *models {
	return &models{w: w, asks: map[string]asker{}, calls: map[string]int{}, asked: map[string][]string{}}
}

// maxOrdinal is above the number of calls of one emission.
const maxOrdinal = 8

// find returns the asker of an invocation id.
func (m *models) find(id, peer string) (asker, bool) {
	if a, ok := m.asks[id]; ok {
		return a, true
	}
	for runID, h := range m.w.runs {
		if slices.Contains(m.known, runID+" "+peer) {
			continue
		}
		m.known = append(m.known, runID+" "+peer)
		for i, node := range m.w.askers(h) {
			if node == "" {
				continue
			}
			t := model.Task{Tenant: tenant, RunID: runID}
			t.Input.NodeID = node
			for k := range maxOrdinal {
				m.asks[model.InvocationID(t, k, peer)] = asker{runID, node, i, k}
			}
		}
	}
	a, ok := m.asks[id]
	return a, ok
}

// askers returns the ids of a run's nodes that call models, with empty strings for others.
func (w *World) askers(h *history) []string {
	if w.scenario.Story != nil {
		return slices.Sorted(maps.Keys(w.scenario.Story.Says))
	}
	out := make([]string, len(h.flow.Nodes))
	for i, n := range h.flow.Nodes {
		if n.Kind.asksModel() {
			out[i] = nodeID(i)
		}
	}
	return out
}
