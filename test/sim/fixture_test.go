package sim_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/test/fixture"
	"waybill.dev/waybill/test/sim"
)

// fixtureStories are the published fixtures as stories.
func fixtureStories(t *testing.T) []sim.Story {
	t.Helper()
	all := fixture.All(t)
	byID := map[string]fixture.Fixture{}
	for _, f := range all {
		byID[f.ID] = f
	}
	var out []sim.Story
	for _, f := range all {
		req := fixture.RequestOf(f.ID)
		s := sim.Story{Name: f.ID, Workflows: family(byID, f), Workflow: f.ID, Inputs: raw(req.Inputs), Configurable: raw(req.Configurable), TestKey: true}
		if script, ok := fixture.Scripts[f.ID]; ok {
			s.Says = map[string][]mock.Entry{}
			for _, n := range f.Nodes {
				var said []mock.Entry
				require.NoError(t, json.Unmarshal([]byte(script), &said))
				s.Says[n.ID] = said
			}
		}
		s.Lines = linesOf(f, req)
		out = append(out, s)
	}
	return out
}

// family are the documents of a fixture and of those that it starts.
func family(byID map[string]fixture.Fixture, f fixture.Fixture) []json.RawMessage {
	out := []json.RawMessage{f.Document}
	for _, n := range f.Nodes {
		if child, ok := byID[n.Config.WorkflowID]; ok {
			out = append(out, family(byID, child)...)
		}
	}
	return out
}

func raw(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

// linesOf are the answers to a fixture's questions, and the end of one that waits for it.
func linesOf(f fixture.Fixture, req fixture.Request) []sim.Line {
	var out []sim.Line
	child := ""
	for _, n := range f.Nodes {
		if n.Config.WorkflowID != "" {
			child = n.Config.WorkflowID
		}
	}
	if ask, ok := fixture.Asks[f.ID]; ok {
		after := []sim.Sign{{Of: child, Event: "interrupt.requested@" + ask.Node}}
		if child != "" { // and its parent has heard of it
			after = append(after, sim.Sign{Event: "node.suspended@" + f.Nodes[0].ID})
		}
		for _, value := range ask.Answers {
			out = append(out, sim.Line{After: after, Do: "answer", Of: child, Node: ask.Node, With: value})
		}
	}
	if req.Status == "cancelled" {
		after := sim.Sign{Event: "node.started@" + f.Nodes[0].ID}
		if child != "" {
			after = sim.Sign{Event: "node.suspended@" + f.Nodes[0].ID}
		}
		out = append(out, sim.Line{After: []sim.Sign{after}, Do: "cancel"})
	}
	return out
}
