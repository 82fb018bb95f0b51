package sim_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"waybill.dev/waybill/services/dispatcher/provider/mock"
	"waybill.dev/waybill/test/sim"
)

func flowOf(id, nodes string, edges ...string) json.RawMessage {
	return json.RawMessage(`{"id":"` + id + `","name":"n","version":"1","nodes":[` + nodes + `],"edges":[` + strings.Join(edges, ",") +
		`],"triggers":[],"variables":[{"name":"given","type":"string"}],"metadata":{},"settings":{}}`)
}

func nodeOf(id, typ, config string, more ...string) string {
	return fmt.Sprintf(`{"id":%q,"typeId":%q,"name":"n","position":{"x":0,"y":0},"config":%s,"inputs":{}%s}`, id, typ, config, strings.Join(more, ""))
}

func edge(from, to string) string {
	return fmt.Sprintf(`{"id":"%[1]s-%[2]s","sourceNodeId":%[1]q,"targetNodeId":%[2]q}`, from, to)
}

const (
	triage  = `{"provider":"mock","model":"mock-mini","prompt":"sort this mail","envelopeType":"vendor.waybill.ticket.triage"}`
	quorum  = `{"title":"t","actions":["accept","reject"],"requiredApprovals":3,"rejectionPolicy":"majority"}`
	accepts = `{"title":"t","actions":["accept"]}`
	begins  = `{"provider":"mock","model":"mock-mini","prompt":"hi"}`
)

func vote(of, voter string, after ...sim.Sign) sim.Line {
	return sim.Line{After: after, Do: "answer", Of: of, Node: "gate", With: `{"action":"accept","voter":"` + voter + `"}`}
}

// again is the retry policy of a node whose call may be sent twice.
const again = `,"settings":{"onUnknownOutcome":"retry"}`

// otherStories are the cases that neither the fixtures nor the recorded runs cover.
func otherStories() []sim.Story {
	ended, asked := sim.Sign{Event: "run.completed"}, sim.Sign{Of: sim.Forked, Event: "interrupt.requested@gate"}
	three := []sim.Line{vote("", "ann", gate), vote("", "bob", gate), vote("", "cid", gate)}
	gated := flowOf("gated", nodeOf("gate", "core.approvalGate", accepts)+","+nodeOf("then", "core.noop", "{}"), edge("gate", "then"))
	out := []sim.Story{
		{
			Name: "two models at a time", Workflow: "both", Races: true,
			Workflows: []json.RawMessage{flowOf("both", nodeOf("a", "core.ai.callPrompt", begins)+","+nodeOf("b", "core.ai.callPrompt", begins)+","+nodeOf("c", "core.noop", "{}"), edge("a", "c"), edge("b", "c"))},
			Says:      map[string][]mock.Entry{"a": {{Content: "one"}}, "b": {{Content: "two"}}},
		},
		{
			Name: "tools with side effects", Workflow: "acts", Races: true, Lines: []sim.Line{{After: []sim.Sign{ended}, Do: "fork", With: "branch", From: "node.started@c"}},
			Workflows: []json.RawMessage{flowOf("acts", nodeOf("a", "core.mcp.callTool", "{}", again)+","+nodeOf("b", "core.mcp.callTool", "{}", again)+","+nodeOf("c", "core.mcp.callTool", "{}", again), edge("a", "c"), edge("b", "c"))},
		},
		{
			Name: "a secret in an answer and an input", Workflow: "told", Inputs: json.RawMessage(`{"given":"` + sim.Secret + `"}`),
			Workflows: []json.RawMessage{flowOf("told", nodeOf("a", "core.ai.callPrompt", begins)+","+nodeOf("b", "core.identity", "{}"), edge("a", "b"))},
			Says:      map[string][]mock.Entry{"a": {{Content: "it is " + sim.Secret}}},
		},
		{
			Name: "a model that fails and is retried", Workflow: "down", TestKey: true,
			Configurable: json.RawMessage(`{"mockProvider":{"id":"error","config":{"code":"provider_unavailable","message":"down","retryable":true}}}`),
			Workflows:    []json.RawMessage{flowOf("down", nodeOf("a", "core.ai.callPrompt", `{"prompt":"hi"}`, `,"settings":{"retry":{"maxRetries":2,"backoffMs":100}}`))},
		},
		{
			Name: "a branch from a model's answer", Workflow: "sorted", Workflows: []json.RawMessage{flowOf("sorted", nodeOf("a", "core.ai.callPrompt", triage)+","+nodeOf("b", "core.noop", "{}"), edge("a", "b"))},
			Says: map[string][]mock.Entry{"a": {{Content: ticket}}}, Lines: []sim.Line{{After: []sim.Sign{ended}, Do: "fork", With: "branch", From: "node.completed@a"}},
		},
		{
			Name: "a branch that calls a model", Workflow: "sorted", Workflows: []json.RawMessage{flowOf("sorted", nodeOf("a", "core.ai.callPrompt", triage)+","+nodeOf("b", "core.noop", "{}"), edge("a", "b"))},
			Says: map[string][]mock.Entry{"a": {{Content: ticket}}}, Lines: []sim.Line{{After: []sim.Sign{ended}, Do: "fork", With: "branch", From: "node.started@a"}},
		},
		{
			Name: "a replay of a model's answer", Workflow: "sorted", Workflows: []json.RawMessage{flowOf("sorted", nodeOf("a", "core.ai.callPrompt", triage)+","+nodeOf("b", "core.noop", "{}"), edge("a", "b"))},
			Says: map[string][]mock.Entry{"a": {{Content: ticket}}}, Lines: []sim.Line{{After: []sim.Sign{ended}, Do: "fork", With: "replay"}},
		},
		{
			Name: "a branch with edited outputs", Workflow: "sorted", Workflows: []json.RawMessage{flowOf("sorted", nodeOf("a", "core.ai.callPrompt", triage)+","+nodeOf("b", "core.identity", "{}"), edge("a", "b"))},
			Says: map[string][]mock.Entry{"a": {{Content: ticket}}}, Lines: []sim.Line{{After: []sim.Sign{ended}, Do: "edit", Node: "a", With: `{"output":"edited"}`}},
		},
		{
			Name: "a run of one node", Workflow: "sorted", Workflows: []json.RawMessage{flowOf("sorted", nodeOf("a", "core.ai.callPrompt", triage)+","+nodeOf("b", "core.noop", "{}"), edge("a", "b"))},
			Says: map[string][]mock.Entry{"a": {{Content: ticket}, {Content: ticket}}}, Lines: []sim.Line{{After: []sim.Sign{ended}, Do: "try", Node: "a", With: `{"prompt":"again"}`}},
		},
		{
			Name: "a replay of a quorum", Workflow: "voted", Workflows: []json.RawMessage{flowOf("voted", nodeOf("gate", "core.approvalGate", quorum))},
			Lines: append(three, sim.Line{After: []sim.Sign{ended}, Do: "fork", With: "replay"}),
		},
		{
			Name: "a replay of a side effect", Workflow: "noticed", TestKey: true,
			Workflows: []json.RawMessage{flowOf("noticed", nodeOf("a", "core.conformance.side-effect", "{}")+","+nodeOf("b", "core.noop", "{}"), edge("a", "b"))},
			Lines:     []sim.Line{{After: []sim.Sign{ended}, Do: "fork", With: "replay"}},
		},
		{
			Name: "a replay of a cancelled run", Workflow: "held", TestKey: true,
			Workflows: []json.RawMessage{flowOf("held", nodeOf("a", "core.delay", `{"delayMs":60000}`)+","+nodeOf("b", "core.conformance.side-effect", "{}"), edge("a", "b"))},
			Lines: []sim.Line{
				{After: []sim.Sign{{Event: "node.started@a"}}, Do: "cancel"},
				{After: []sim.Sign{{Event: "run.cancelled"}}, Do: "fork", With: "replay"},
			},
		},
		{
			Name: "a branch with its own side effect", Workflow: "noticed", TestKey: true,
			Workflows: []json.RawMessage{flowOf("noticed", nodeOf("a", "core.conformance.side-effect", "{}")+","+nodeOf("b", "core.noop", "{}"), edge("a", "b"))},
			Lines:     []sim.Line{{After: []sim.Sign{ended}, Do: "fork", With: "branch", From: "node.started@a"}},
		},
	}
	// The votes cast before a branch count in the branch: one more is enough.
	for _, from := range []string{"approval.requested@gate", "interrupt.resolved@gate"} {
		s := sim.Story{
			Name: "a branch within a quorum from " + from, Workflow: "voted", Workflows: []json.RawMessage{flowOf("voted", nodeOf("gate", "core.approvalGate", quorum))},
			Lines: append(slices.Clone(three), sim.Line{After: []sim.Sign{ended}, Do: "fork", With: "branch", From: from}),
		}
		if s.Lines = append(s.Lines, vote(sim.Forked, "dan", asked)); from == "approval.requested@gate" {
			s.Lines = append(s.Lines, vote(sim.Forked, "eve", asked), vote(sim.Forked, "fay", asked))
		}
		out = append(out, s)
	}
	// So do the votes before a replay whose source still waits.
	out = append(out, sim.Story{
		Name: "a replay within a quorum", Workflow: "voted", Workflows: []json.RawMessage{flowOf("voted", nodeOf("gate", "core.approvalGate", quorum))},
		Lines: []sim.Line{three[0], three[1], {After: []sim.Sign{gate}, Do: "fork", With: "replay"}, vote(sim.Forked, "dan", asked), three[2]},
	})
	// a branch from each position of an answered run
	for i, from := range []string{
		"node.started@gate", "node.suspended@gate", "interrupt.requested@gate", "approval.requested@gate", "interrupt.resolved@gate", "approval.received@gate",
		"node.resumed@gate", "node.completed@gate", "node.started@then", "node.completed@then", "run.completed",
	} {
		s := sim.Story{
			Name: "a branch of a gate from " + from, Workflow: "gated", Workflows: []json.RawMessage{gated},
			Lines: []sim.Line{vote("", "ann", gate), {After: []sim.Sign{ended}, Do: "fork", With: "branch", From: from}},
		}
		if i < 5 {
			s.Lines = append(s.Lines, vote(sim.Forked, "ann", asked))
		}
		out = append(out, s)
	}
	return out
}
