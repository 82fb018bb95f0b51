package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"waybill.dev/waybill/services/dispatcher/model"
)

// Script is what a model does when a node asks it, call after call: what is
// counted happens that many times, in this order, and then comes the end. So a
// node comes to the same however often it is asked anew.
type Script struct {
	// Hangs are calls without an answer, Fails such that the server fails and may be
	// asked again: Late ones after a piece of the answer.
	Hangs, Fails int  `json:",omitempty"`
	Late         bool `json:",omitempty"`
	// Wrongs are answers that are no document as asked for, Cuts such that are cut off.
	Wrongs, Cuts int     `json:",omitempty"`
	End          lastly  `json:",omitempty"`
	Pieces       int     `json:",omitempty"`
	Secret       bool    `json:",omitempty"`
	Think        float64 `json:",omitempty"` // seconds until the first word
}

// lastly is how a script ends.
type lastly string

// The ends of scripts.
const (
	endsWell     lastly = ""
	endsRefused  lastly = "refused"
	endsRejected lastly = "rejected" // the server does not take the call
	endsDown     lastly = "down"     // the server fails every time
	endsWrong    lastly = "wrong"    // no answer is as asked for
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
		if s.Wrongs = r.IntN(4); s.Wrongs > 2 { // more than a node may ask for
			s.Wrongs, s.End = 0, endsWrong
		}
	case 5:
		if k != kindPrompt {
			s.Cuts = 1
		}
	}
	return s
}

// act is what a model does in one call.
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

// act is that of the nth call, from 0.
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

// calls is how many there are before the end.
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

// models knows who asks: requests to a model do not name the run, but their
// invocation ids follow from it.
type models struct {
	w     *World
	asks  map[string]asker // by invocation id
	calls map[string]int   // by run and node
	known []string         // runs whose ids are in asks, by peer
	spent bool             // scripts are at their ends
	// asked are the invocation ids that models of a story were asked with, by run and node, in order.
	asked map[string][]string
}

// asker is what an invocation id stands for.
type asker struct {
	run  string
	node string
	// nth is the node's place in a generated workflow.
	nth     int
	ordinal int
}

func newModels(w *World) *models {
	return &models{w: w, asks: map[string]asker{}, calls: map[string]int{}, asked: map[string][]string{}}
}

// maxOrdinal is more calls than one emission can have.
const maxOrdinal = 8

// find names the asker of an invocation id.
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

// askers are the nodes of a run that ask models; empty where one does not.
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
