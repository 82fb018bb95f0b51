package machine

import (
	"maps"
	"slices"

	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/workflow"
)

// NewWithoutDefinition makes a machine that can only end its run: the definition is not needed
// for that, and may be lost. Its steps are the nodes that have started, by id.
func NewWithoutDefinition(limits Limits, st *runstate.State) *Machine {
	g := &workflow.Graph{}
	for _, id := range slices.Sorted(maps.Keys(st.Nodes)) {
		g.Steps = append(g.Steps, workflow.Step{Node: &workflow.Node{ID: id}})
	}
	return New(Plan{Def: &workflow.Definition{}, Graph: g}, limits, st)
}
