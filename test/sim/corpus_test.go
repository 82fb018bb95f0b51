package sim_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/test/harness"
	"waybill.dev/waybill/test/sim"
)

// beyond lists workflows whose runs need a feature that the simulated host lacks.
var beyond = map[string]string{
	"approve-chief": otherPeople, "approve-force": otherPeople, "approve-group": otherPeople, "approve-later": otherPeople,
	"feature-masked":       "a store of sensitive values",
	"feature-media-stored": "a store of assets",
	"feature-substituted":  "a pack",
	"feature-taint":        "an agent",
	"feature-thoughts":     "a model that shows its thoughts",
}

const otherPeople = "credentials of several users"

// unstaged reports whether the simulation skips a recorded run. A child starts with its parent,
// forks are among the other stories, and the log of a run cancelled before its start has no signs.
func unstaged(r recorded) bool {
	return r.record.Parent != nil || r.record.Fork != nil || beyond[r.record.WorkflowID] != "" || len(r.events) == 2 && r.events[1].Type == wire.EventRunCancelled
}

// recorded is a run of the golden corpus.
type recorded struct {
	name   string
	record *wire.RunRecord
	doc    json.RawMessage
	events []wire.Event
}

func corpus(t *testing.T) []recorded {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "golden", "corpus", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var out []recorded
	for _, file := range files {
		b, err := os.ReadFile(file) //nolint:gosec // G304: of the corpus
		require.NoError(t, err)
		var r harness.Recording
		require.NoError(t, json.Unmarshal(b, &r))
		rec, err := wire.ParseRunRecord(r.Record)
		require.NoError(t, err)
		out = append(out, recorded{strings.TrimSuffix(filepath.Base(file), ".json"), rec, r.Workflow, r.Events})
	}
	return out
}

// recordedStories returns the recorded root runs as stories.
func recordedStories(t *testing.T) []sim.Story {
	t.Helper()
	all := corpus(t)
	docs := map[string]json.RawMessage{}
	for _, r := range all {
		docs[r.record.WorkflowID] = r.doc
	}
	var out []sim.Story
	for _, r := range all {
		if unstaged(r) {
			continue
		}
		s := sim.Story{
			Name: r.name, Workflow: r.record.WorkflowID, Configurable: r.record.Configurable, TestKey: true, Workflows: reached(docs, r.doc),
			Says: said(r.events), Lines: append(unrecorded[r.way()], linesFrom(r.events)...),
		}
		if r.record.Inputs != nil {
			var err error
			s.Inputs, err = json.Marshal(r.record.Inputs)
			require.NoError(t, err)
		}
		if script, ok := scripts[r.way()]; ok {
			s.Says = script
		}
		out = append(out, s)
	}
	return out
}

// reached returns a document and those of the workflows that it starts.
func reached(docs map[string]json.RawMessage, doc json.RawMessage) []json.RawMessage {
	out := []json.RawMessage{doc}
	var d struct {
		Nodes []struct{ Config struct{ WorkflowID string } }
	}
	_ = json.Unmarshal(doc, &d)
	for _, n := range d.Nodes {
		if child, ok := docs[n.Config.WorkflowID]; ok {
			out = append(out, reached(docs, child)...)
		}
	}
	return out
}

// said returns the recorded answers of a run's model, where the log shows them.
func said(events []wire.Event) map[string][]mock.Entry {
	out := map[string][]mock.Entry{}
	text := ""
	for _, e := range events {
		var p struct {
			Chunk                     string
			InputTokens, OutputTokens int
		}
		_ = json.Unmarshal(e.Payload, &p)
		switch e.Type {
		case wire.EventOutputChunk:
			text += p.Chunk
		case wire.EventProviderUsage:
			out[e.NodeID] = append(out[e.NodeID], mock.Entry{Content: text, InputTokens: p.InputTokens, OutputTokens: p.OutputTokens})
			text = ""
		}
	}
	return out
}

const ticket = `{"reasoning":"charged twice","category":"billing","priority":"urgent","language":"en","summary":"Second charge for one lamp.","action":{"kind":"refund","orderId":"WL-48213","reason":"double charge"}}`

// way names a recorded run by its workflow and its end. The first recorded run of each way is used.
func (r recorded) way() string {
	return r.record.WorkflowID + " " + string(r.events[len(r.events)-1].Type)
}

// scripts are the model answers that the log does not show, by the run's way.
var scripts = map[string]map[string][]mock.Entry{
	"mocked run.completed":           {"mocked-node": {{StopReason: "max_tokens"}, {Content: `{"ok":true}`}}},
	"mocked run.failed":              {"mocked-node": {{Content: "{}"}, {Content: "{}"}, {Content: ""}}},
	"feature-recovery run.completed": {"recovered": {{Content: "```json\n{\"result\":\"ok\"}\n```"}}},
	"feature-prose run.completed":    {"prose": {{Content: "It went well."}, {Content: "It went very well."}, {Content: "Really well."}, {Content: `{"result":"well"}`}}},
	"feature-refusal run.failed":     {"refuses": {{StopReason: "safety", RefusalText: "I will not say xyzzy"}}},
	"model-asks run.completed": {"clarifying-node": {
		{Content: `{"type":"clarification.request","payload":{"questions":[{"id":"q1","question":"which?","schema":{"enum":["blue"]}}]}}`}, {Content: ticket},
	}},
}

var (
	gate    = sim.Sign{Event: "interrupt.requested@gate"}
	child   = sim.Sign{Of: "approve", Event: "interrupt.requested@gate"}
	waiting = sim.Sign{Event: "node.suspended@call"}
)

// unrecorded are actions on runs that their own log does not show, by the run's way.
var unrecorded = map[string][]sim.Line{
	"approve-three run.completed": {
		{After: []sim.Sign{gate}, Do: "answer", Node: "gate", With: `{"action":"accept","voter":"ann"}`},
		{After: []sim.Sign{gate}, Do: "answer", Node: "gate", With: `{"action":"accept","voter":"bob"}`},
	},
	"approve-three run.failed": {
		{After: []sim.Sign{gate}, Do: "answer", Node: "gate", With: `{"action":"accept","voter":"cid"}`},
		{After: []sim.Sign{gate}, Do: "answer", Node: "gate", With: `{"action":"reject","voter":"ann"}`},
	},
	"grandparent run.completed": {{After: []sim.Sign{child, waiting}, Do: "answer", Of: "approve", Node: "gate", With: `{"action":"accept"}`}},
}

// linesFrom returns the actions on a run that its own log shows.
func linesFrom(events []wire.Event) []sim.Line {
	var out []sim.Line
	for i, e := range events {
		var p struct {
			ResumeValue map[string]json.RawMessage
			DrainPolicy string
		}
		_ = json.Unmarshal(e.Payload, &p)
		switch e.Type {
		case wire.EventInterruptResolved:
			if p.ResumeValue == nil { // expired without an answer
				continue
			}
			delete(p.ResumeValue, "decidedAt")
			delete(p.ResumeValue, "decidedBy")
			value, _ := json.Marshal(p.ResumeValue)
			out = append(out, sim.Line{After: signs(events[:i], e.NodeID), Do: "answer", Node: e.NodeID, With: string(value)})
		case wire.EventRunPaused:
			after := signs(events[:i], "")
			if p.DrainPolicy == string(wire.DrainCurrent) { // the nodes in progress have ended since
				after = signs(events[:2], "")
			}
			out = append(out, sim.Line{After: after, Do: "pause", With: p.DrainPolicy})
		case wire.EventRunResumed:
			out = append(out, sim.Line{After: signs(events[:i], ""), Do: "resume"})
		case wire.EventRunCancelled:
			for events[i-1].Type == wire.EventNodeCancelled {
				i--
			}
			out = append(out, sim.Line{After: signs(events[:i], ""), Do: "cancel"})
		}
	}
	return out
}

// signs returns the last of some events, and all questions of a node among them.
func signs(events []wire.Event, node string) []sim.Sign {
	var out []sim.Sign
	for i, e := range events {
		if i == len(events)-1 || node != "" && e.NodeID == node && e.Type != wire.EventInterruptResolved {
			out = append(out, sim.Sign{Event: strings.TrimSuffix(string(e.Type)+"@"+e.NodeID, "@")})
		}
	}
	return out
}
