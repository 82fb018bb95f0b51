package sim_test

import (
	"testing"
	"time"

	"waybill.dev/waybill/test/sim"
)

// Clocks of single processes that are set, forth and back, amid everything else: what is due
// may come early or late by as much, and nothing else is wrong.
func TestSim_ClocksThatJumpKeepTheRules(t *testing.T) {
	t.Parallel()
	for seed := range *seeds / 10 {
		s := sim.Generate(*from + seed)
		s.Faults.Jump, s.Faults.Far = 0.05, []time.Duration{time.Second, time.Minute, 9 * time.Minute}[seed%3]
		s.Faults.For, s.Faults.Most = max(s.Faults.For, time.Minute), s.Faults.Most+30
		if v := simulate(t, s, sim.Options{}); v.Err != nil {
			report(t, s, v.Err)
			return
		}
	}
}
