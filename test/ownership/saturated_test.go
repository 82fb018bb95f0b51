package ownership

import (
	"fmt"
	"testing"
	"time"
)

// Two dispatchers with more runs than slots call the model once for each prompt.
func TestSaturated_OneModelCallPerPrompt(t *testing.T) {
	s := pick(t, size{16, 96, 1500 * time.Millisecond}, size{32, 300, 6 * time.Second})
	together(t)
	for i := range rounds(t) {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			r := newRig(t, s, same(2)...)
			r.start(t, askOnce, s.runs)
			r.completed(t)
			r.once(t, s.runs)
		})
	}
}

// Two dispatchers with more runs than slots execute a tool once for each run.
func TestSaturated_OneToolCallPerRun(t *testing.T) {
	s := pick(t, size{16, 96, 1500 * time.Millisecond}, size{32, 300, 6 * time.Second})
	together(t)
	r := newRig(t, s, same(2)...)
	r.start(t, charge, s.runs)
	r.completed(t)
	r.once(t, s.runs)
}

// The default settings hold the same guarantee.
func TestSaturated_OneModelCallPerPromptByDefault(t *testing.T) {
	needsRest(t)
	s := pick(t, size{0, 2500, 5 * time.Second}, size{0, 3339, 40 * time.Second})
	r := newRig(t, s, same(2)...)
	r.start(t, askOnce, s.runs)
	r.completed(t)
	r.once(t, s.runs)
}

// Dispatchers with different leases do not take over each other's runs.
func TestSaturated_MixedLeases(t *testing.T) {
	needsRest(t)
	s := pick(t, size{8, 96, 4 * time.Second}, size{32, 300, 20 * time.Second})
	r := newRig(t, s, []string{"--lease", "30s"}, []string{"--lease", "15s"}, []string{"--lease", "3s"})
	r.dispatchers[2].Restart() // the shortest lease is the last to join
	r.start(t, askOnce, s.runs)
	r.completed(t)
	r.once(t, s.runs)
}
