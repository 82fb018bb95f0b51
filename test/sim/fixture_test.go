package sim_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/test/fixture"
	"waybill.dev/waybill/test/sim"
)

// fixtureStories returns the published fixtures as stories.
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
		s.Lines = f.Steps()
		out = append(out, s)
	}
	return out
}

// family returns the documents of a fixture and of the workflows it starts.
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
