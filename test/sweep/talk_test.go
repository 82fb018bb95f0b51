package sweep

import (
	"fmt"
	"net/http"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/anthropic"
	"waybill.dev/waybill/test/double/gemini"
)

// Answers, reasoning and refusals of Anthropic's and Google's models, and failures of their
// servers. Nodes of one vendor run in order, whatever the result of the one before.

// The models to call; the catalogue has both.
const (
	claudeModel = "claude-opus-4-6"
	geminiModel = "gemini-2.5-flash"
)

const (
	atClaude = `"provider":"anthropic","model":"` + claudeModel + `","maxTokens":60000`
	atGemini = `"provider":"gemini","model":"` + geminiModel + `","maxTokens":60000`
	oneText  = `{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"type":"string"}}}`
)

// follows makes a node wait for the end of another.
func follows(node, before string) string {
	return fmt.Sprintf(`{"id":%q,"sourceNodeId":%q,"targetNodeId":%q,"targetInput":"after","triggerRule":"all_complete"}`, before+"-"+node, before, node)
}

// carries passes a node's output to another node.
func carries(from, to, input string) string {
	return fmt.Sprintf(`{"id":%q,"sourceNodeId":%q,"targetNodeId":%q,"targetInput":%q}`, from+"-"+to, from, to, input)
}

// plain returns a prompt without planted text.
func plain(id, model string) string {
	return node(id, "core.ai.callPrompt", `{`+model+`,"prompt":"go on"}`, "{}")
}

// talkFlow calls both vendors with reasoning and text.
func talkFlow() string {
	return graph("talk", []string{follows("claude-value", "claude"), follows("gemini-value", "gemini")},
		node("claude", "core.ai.callPrompt", `{`+atClaude+`,"thoughts":true,"userPromptRef":"prompt:sweep.sort"}`, "{}"),
		structured("claude-value", atClaude, oneText),
		node("gemini", "core.ai.callPrompt", `{`+atGemini+`,"thoughts":true,"prompt":"sort {{text}}"}`, "{}"),
		structured("gemini-value", atGemini, oneText))
}

// talks plants in the reasoning and answers of both vendors' models.
func (r *rig) talks(b batch) {
	r.t.Helper()
	value := func(place string) []string { return cutAnywhere(`{"a":`+mustJSON(b.at(place))+`}`, 400) }
	r.claude.Enqueue(
		anthropic.Reply{Thoughts: cutAnywhere(b.at("claude's thought"), 400), Pieces: cutAnywhere(b.at("claude's prose"), 400)},
		anthropic.Reply{Pieces: value("claude's value")})
	r.gemini.Enqueue(
		gemini.Reply{Thoughts: cutAnywhere(b.at("gemini's thought"), 400), Pieces: cutAnywhere(b.at("gemini's prose"), 400)},
		gemini.Reply{Pieces: value("gemini's value")})
	r.collect()
	shown := r.run(map[string]any{"workflowId": "talk", "inputs": map[string]any{"text": b.at("prompt")}})
	asked := r.collect()
	require.Contains(r.t, shown, `"type":"run.completed"`, b.name)
	for _, name := range []string{"anthropic", "gemini"} {
		require.Len(r.t, asked[name], 2)
		r.prove(b, string(asked[name][0].Body), "prompt")
		r.prove(b, string(asked[name][1].Body), "prompt")
	}
	require.Contains(r.t, shown, `"type":"prompt.composed"`)
	r.prove(b, shown, "prompt", "claude's thought", "claude's prose", "claude's value", "gemini's thought", "gemini's prose", "gemini's value")
	r.thought(b, "claude", "claude's thought")
	r.thought(b, "gemini", "gemini's thought")
}

// thought fails unless a model's reasoning arrived both in pieces, joined, and as a whole.
func (r *rig) thought(b batch, nodeID, place string) {
	r.t.Helper()
	r.prove(b, r.thoughts[nodeID].pieces, place)
	r.prove(b, r.thoughts[nodeID].whole, place)
}

// failFlow lets each server fail in all of its ways.
func failFlow() string {
	var (
		nodes, edges []string
		before       string
	)
	chain := func(id, node string) {
		nodes = append(nodes, node)
		if before != "" {
			edges = append(edges, follows(id, before))
		}
		before = id
	}
	for _, id := range []string{"claude-declines", "claude-fails", "claude-breaks", "claude-stops"} {
		chain(id, plain(id, atClaude))
	}
	before = ""
	for _, id := range []string{"gemini-declines", "gemini-blocks", "gemini-fails", "gemini-breaks"} {
		chain(id, plain(id, atGemini))
	}
	before = ""
	for _, id := range []string{"tool-complains", "tool-fails", "tool-refuses", "tool-is-away"} {
		allow := fmt.Sprint(id == "tool-complains")
		chain(id, node(id, "core.mcp.callTool", `{"server":"tools","tool":"say","allowToolError":`+allow+`}`, "{}"))
	}
	before = ""
	for _, id := range []string{"agent-fails", "agent-strays", "agent-refuses", "agent-is-away"} {
		chain(id, node(id, "core.a2a.sendMessage", `{"agent":"desk","message":"go on"}`, "{}"))
	}
	return graph("fail", edges, nodes...)
}

// Error bodies of the two vendors.
var (
	claudeStatuses = []int{400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 503, 504, 529}
	geminiStatuses = []int{400, 401, 403, 404, 409, 413, 429, 499, 500, 502, 503, 504}
)

// fails plants in the errors of servers; i selects the statuses of this batch.
func (r *rig) fails(b batch, i int) {
	r.t.Helper()
	one := oneLine(b.items[i%len(b.items)].text)
	headers := http.Header{"X-Request-Id": {one}, "Www-Authenticate": {one}, "Server": {one}}
	r.claude.Enqueue(
		anthropic.Reply{Pieces: []string{"no"}, Refusal: &anthropic.Refusal{Category: one, Explanation: b.at("claude's no")}},
		anthropic.Reply{Status: claudeStatuses[i%len(claudeStatuses)], Type: one, Message: b.at("claude's error"), RetryAfter: one, Header: headers},
		anthropic.Reply{Pieces: cutAnywhere("half of "+b.at("claude's half"), 400), End: anthropic.EndError, Type: one, Message: b.at("claude's error")},
		anthropic.Reply{Pieces: []string{"fine"}, StopReason: one, Model: one, ToolCalls: []anthropic.ToolCall{{Name: one, Input: mustJSON(map[string]string{"a": b.at("claude's argument")})}}},
		anthropic.Reply{Pieces: []string{"fine"}})
	detail := map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": one, "metadata": map[string]string{"a": b.at("gemini's detail")}}
	r.gemini.Enqueue(
		gemini.Reply{FinishReason: "SAFETY", FinishMessage: b.at("gemini's no"), Harm: one},
		gemini.Reply{Blocked: one},
		gemini.Reply{Status: geminiStatuses[i%len(geminiStatuses)], Code: one, Message: b.at("gemini's error"), Details: []any{detail}, RetryAfter: one, Header: headers},
		gemini.Reply{Pieces: cutAnywhere("half of "+b.at("gemini's half"), 400), End: gemini.EndError, Status: http.StatusServiceUnavailable, Code: one, Message: b.at("gemini's error"), Details: []any{detail}})
	r.enqueuePeerFailures(b, i, one, headers)
	r.collect()
	shown := r.run(map[string]any{"workflowId": "fail", "inputs": map[string]any{"text": "x"}})
	asked := r.collect()
	require.Len(r.t, asked["anthropic"], 5, "%s: a call of a tool is no answer", b.name)
	require.Len(r.t, asked["gemini"], 4, b.name)
	require.Zero(r.t, r.tools.Left(), "%s: a tool was never called", b.name)
	require.Zero(r.t, r.desk.Left(), "%s: the agent was never asked", b.name)
	r.prove(b, shown, "claude's no", "tool's complaint")
	for _, place := range []string{"gemini's detail", "tool's error", "tool's data", "tool's page", "agent's error", "agent's data", "agent's page", "agent's failure"} {
		require.NotContains(r.t, shown, beginOf(place), "a server's error text must not be repeated")
	}
}
