package sim

import "slices"

// Shrink returns a smaller scenario that still fails, without unneeded clients, steps, nodes or
// faults. fails simulates a scenario.
func Shrink(s Scenario, fails func(Scenario) bool) Scenario {
	for smaller := true; smaller; {
		smaller = false
		for _, t := range s.smaller() {
			if fails(t) {
				s, smaller = t, true
				break
			}
		}
	}
	return s
}

// smaller returns the scenarios with one element less.
func (s Scenario) smaller() []Scenario {
	var out []Scenario
	for i, steps := range s.Clients {
		for j := range steps {
			out = append(out, s.with(func(t *Scenario) { t.Clients[i] = slices.Delete(t.Clients[i], j, j+1) }))
		}
	}
	for i, f := range s.Flows {
		if last := len(f.Nodes) - 1; last > 0 {
			out = append(out, s.with(func(t *Scenario) { t.Flows[i].Nodes = t.Flows[i].Nodes[:last] }))
		}
	}
	for _, p := range []func(*Faults) *float64{
		func(f *Faults) *float64 { return &f.Fail }, func(f *Faults) *float64 { return &f.Lose }, func(f *Faults) *float64 { return &f.Slow },
		func(f *Faults) *float64 { return &f.Crash }, func(f *Faults) *float64 { return &f.Freeze }, func(f *Faults) *float64 { return &f.Expire },
		func(f *Faults) *float64 { return &f.Linger }, func(f *Faults) *float64 { return &f.Stale }, func(f *Faults) *float64 { return &f.Jump },
	} {
		if *p(&s.Faults) > 0 {
			out = append(out, s.with(func(t *Scenario) { *p(&t.Faults) = 0 }))
		}
	}
	if s.Faults.Most > 1 {
		out = append(out, s.with(func(t *Scenario) { t.Faults.Most /= 2 }))
	}
	return out
}

// with returns a changed copy.
func (s Scenario) with(change func(*Scenario)) Scenario {
	t := s
	t.Flows, t.Clients = slices.Clone(s.Flows), slices.Clone(s.Clients)
	for i := range t.Clients {
		t.Clients[i] = slices.Clone(t.Clients[i])
	}
	change(&t)
	return t
}
