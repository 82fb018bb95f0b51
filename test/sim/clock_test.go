package sim_test

import (
	"testing"
	"time"

	"waybill.dev/waybill/test/sim"
)

// Clocks of single processes jump forward and back, in addition to all other faults. Timers may
// fire early or late by that much. No other rule may break.
func TestSim_ClocksThatJumpKeepTheRules(t *testing.T) {
	t.Parallel()
	for seed := range *seeds / 10 {
		s := sim.Generate(firstSeed() + seed)
		s.Faults.Jump, s.Faults.Far = 0.05, []time.Duration{time.Second, time.Minute, 9 * time.Minute}[seed%3]
		s.Faults.For, s.Faults.Most = max(s.Faults.For, time.Minute), s.Faults.Most+30
		if v := simulate(t, s, sim.Options{}); v.Err != nil {
			report(t, s, v.Err)
			return
		}
	}
}
