package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher/definition"
)

const tenant = "acme"

// Scenario is the complete input of a simulation.
type Scenario struct {
	Seed        uint64
	Dispatchers int
	// Slots is the number of runs a dispatcher executes concurrently.
	Slots int
	Flows []Flow
	// TenantLimit is the tenant's concurrency limit; 0 means no limit.
	TenantLimit int `json:",omitempty"`
	// Leases are the lease durations of the dispatchers, by slot.
	Leases []time.Duration
	// Clients execute their steps in order.
	Clients [][]Step
	Faults  Faults
	// Story replaces the generated part; nil means no story. Blows are faults of chosen calls.
	Story *Story `json:",omitempty"`
	Blows []Blow `json:",omitempty"`
}

// Step is a client's action on a run. The run's number gives its id and its workflow.
type Step struct {
	After time.Duration
	Do    string // name of an action
	Run   int
	Slot  int // dispatcher to try first
	// With is the argument: how to pause, what to answer.
	With string `json:",omitempty"`
}

const maxRuns = 4

// does reports whether a client has this action.
func (s Scenario) does(what string) bool {
	return slices.ContainsFunc(s.Clients, func(steps []Step) bool {
		return slices.ContainsFunc(steps, func(st Step) bool { return st.Do == what })
	})
}

// Generate returns the scenario of a seed.
func Generate(seed uint64) Scenario {
	r := rand.New(rand.NewPCG(seed, 0xace))
	s := Scenario{Seed: seed, Dispatchers: 2 + r.IntN(2), Faults: newFaults(r)}
	for range 1 + r.IntN(3) {
		s.Flows = append(s.Flows, newFlow(r))
	}
	runs := 1 + r.IntN(maxRuns)
	for range 1 + r.IntN(3) {
		s.Clients = append(s.Clients, nil)
	}
	for run := range runs { // some client creates every run
		s.add(r, Step{Do: "create", Run: run})
	}
	for range r.IntN(2 * runs) {
		st := Step{Do: draw(r), Run: r.IntN(runs)}
		if with := actions[st.Do].with; len(with) > 0 {
			st.With = with[r.IntN(len(with))]
		}
		s.add(r, st)
	}
	s.Slots = 1 + r.IntN(4)
	for range s.Dispatchers {
		s.Leases = append(s.Leases, []time.Duration{leaseTime, leaseTime, 5 * leaseTime}[r.IntN(3)])
	}
	s.Faults.Drain = []float64{0, 0, 0.01, 0.03}[r.IntN(4)]
	return s
}

// Crowd returns a scenario without faults in which more runs wait than dispatchers have slots, and
// models think for longer than a short AckWait.
func Crowd(seed uint64) Scenario {
	r := rand.New(rand.NewPCG(seed, 0xc0d))
	s := Scenario{Seed: seed, Dispatchers: 2, Slots: 1, Leases: []time.Duration{leaseTime, leaseTime}, Clients: [][]Step{nil}}
	s.Flows = []Flow{{Nodes: []Node{{Kind: kindPrompt, Script: &Script{Pieces: 1, Think: 4 + float64(r.IntN(3))}}}}}
	for run := range 6 + r.IntN(6) {
		s.Clients[0] = append(s.Clients[0], Step{Do: "create", Run: run, Slot: run % 2})
	}
	return s
}

// leaseOf is the lease duration of the dispatcher in a slot.
func (w *World) leaseOf(slot int) time.Duration {
	if slot < len(w.scenario.Leases) {
		return w.scenario.Leases[slot]
	}
	return leaseTime
}

func (s *Scenario) add(r *rand.Rand, st Step) {
	i := r.IntN(len(s.Clients))
	st.Slot = r.IntN(s.Dispatchers)
	st.After = []time.Duration{0, 3 * time.Millisecond, 20 * time.Millisecond, time.Second, 6 * time.Second}[r.IntN(5)]
	s.Clients[i] = append(s.Clients[i], st)
}

// draw picks an action by weight.
func draw(r *rand.Rand) string {
	sum := 0
	for _, a := range actions {
		sum += a.weight
	}
	n := r.IntN(sum)
	for _, name := range slices.Sorted(maps.Keys(actions)) {
		if n -= actions[name].weight; n < 0 {
			return name
		}
	}
	return ""
}

// newFaults draws the faults: none for one seed in six, otherwise some kinds, rare or frequent.
func newFaults(r *rand.Rand) Faults {
	if r.IntN(6) == 0 {
		return Faults{}
	}
	chance := func() float64 { return []float64{0, 0, 0.01, 0.04, 0.12}[r.IntN(5)] }
	return Faults{
		Fail: chance(), Lose: chance(), Slow: chance(), Crash: chance() / 2, Freeze: chance() / 4,
		Expire: chance(), Linger: []float64{0, 0.5, 1}[r.IntN(3)], Stale: []float64{0, 0.5}[r.IntN(2)],
		For: 5*time.Second + time.Duration(r.Int64N(int64(time.Minute))), Most: 5 + r.IntN(60),
	}
}

func runID(n int) string        { return fmt.Sprintf("run-%d", n) }
func flowID(n int) string       { return fmt.Sprintf("flow-%d", n) }
func (s Scenario) of(n int) int { return n % len(s.Flows) }

// define registers the workflows before any process starts.
func (w *World) define() error {
	r := definition.New(w.records)
	if w.scenario.Story != nil {
		return w.scenario.Story.register(r)
	}
	for i, f := range w.scenario.Flows {
		def, problems := workflow.Parse(f.document(flowID(i)))
		if len(problems) > 0 {
			return fmt.Errorf("generated workflow is invalid: %v", problems)
		}
		if _, _, err := r.Put(context.Background(), tenant, def, false); err != nil {
			return err
		}
	}
	return nil
}
