package sweep

import (
	"encoding/json"
	"net/http"

	a2asdk "github.com/a2aproject/a2a-go/a2a"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/double/a2a"
	"waybill.dev/waybill/test/double/mcp"
	"waybill.dev/waybill/test/double/openaicompat"
)

// Results of tools and agents: each goes to the next node, and so leaves the host again.

// relayFlow passes a tool's result to an agent, and its answer to a model.
func relayFlow() string {
	return graph("relay", []string{carries("fetch", "ask", "found"), carries("ask", "read", "said")},
		node("fetch", "core.mcp.callTool", `{"server":"tools","tool":"say","arguments":{"about":"{{text}}","more":["of {{text}}"]}}`, `{"text":{"type":"variable","variableName":"text"}}`),
		node("ask", "core.a2a.sendMessage", `{"agent":"desk","message":"what of {{found}}"}`, "{}"),
		node("read", "core.ai.callPrompt", `{`+distant+`,"prompt":"sort {{said}}"}`, "{}"))
}

// relays plants in tool results and agent answers.
func (r *rig) relays(b batch) {
	r.t.Helper()
	one := oneLine(b.items[0].text)
	result := mcp.Text(b.at("tool's text"))
	result.Content = append(result.Content,
		&mcpsdk.ResourceLink{URI: "file:///x", Name: b.at("tool's link"), Description: b.at("tool's link"), MIMEType: one},
		&mcpsdk.EmbeddedResource{Resource: &mcpsdk.ResourceContents{URI: "file:///x", Text: b.at("tool's resource")}})
	result.StructuredContent = map[string]any{b.at("tool's name"): []any{b.at("tool's value")}}
	result.Meta = mcpsdk.Meta{"x": b.at("tool's meta")}
	r.tools.Enqueue(mcp.Reply{Result: result, Notes: []string{b.at("tool's note")}})
	answer := a2asdk.NewMessage(a2asdk.MessageRoleAgent, a2asdk.TextPart{Text: b.at("agent's text")},
		a2asdk.DataPart{Data: map[string]any{b.at("agent's name"): []any{b.at("agent's value")}}})
	answer.Metadata = map[string]any{"x": b.at("agent's meta")}
	r.desk.Enqueue(a2a.Reply{Answer: &a2asdk.Task{
		ID: "t", ContextID: "c", Status: a2asdk.TaskStatus{State: a2asdk.TaskStateCompleted, Message: answer},
		Artifacts: []*a2asdk.Artifact{{ID: "a", Name: b.at("agent's artifact"), Description: one, Parts: answer.Parts}},
		Metadata:  map[string]any{b.at("agent's task"): one},
	}})
	r.vendor.Enqueue(openaicompat.Reply{Pieces: []string{"fine"}})
	r.collect()
	shown := r.run(map[string]any{"workflowId": "relay", "inputs": map[string]any{"text": b.at("prompt")}})
	asked := r.collect()
	require.Contains(r.t, shown, `"type":"run.completed"`, b.name)
	r.prove(b, shown, "tool's text", "tool's link", "tool's resource", "tool's name", "tool's value", "agent's text", "agent's name", "agent's value", "agent's meta", "agent's artifact", "agent's task")
	r.prove(b, bodies(asked["MCP server"]), "prompt")
	r.prove(b, bodies(asked["A2A agent"]), "tool's name", "tool's value")
	r.prove(b, bodies(asked["vendor"]), "agent's text", "agent's name", "agent's value")
}

// Error statuses of peers. Some mean that a session is lost; the call is then repeated.
var peerStatuses = []int{401, 402, 403, 409, 410, 422, 429, 500, 502, 503}

// enqueuePeerFailures plants in every way a tool or an agent can fail.
func (r *rig) enqueuePeerFailures(b batch, i int, one string, headers http.Header) {
	failed := mcp.Text(b.at("tool's failure"))
	failed.IsError = true
	complaint := mcp.Text(b.at("tool's complaint"))
	complaint.IsError = true
	r.tools.Enqueue(
		mcp.Reply{Result: complaint},
		mcp.Reply{Result: failed},
		mcp.Reply{Err: &jsonrpc.Error{Code: []int64{-32603, -32602, -32000}[i%3], Message: b.at("tool's error"), Data: json.RawMessage(mustJSON(b.at("tool's data")))}},
		mcp.Reply{Status: peerStatuses[i%len(peerStatuses)], Body: b.at("tool's page"), Header: headers})
	why := a2asdk.NewMessage(a2asdk.MessageRoleAgent, a2asdk.TextPart{Text: b.at("agent's failure")})
	ended := func(state a2asdk.TaskState) a2a.Reply {
		return a2a.Reply{Answer: &a2asdk.Task{ID: "t", ContextID: "c", Status: a2asdk.TaskStatus{State: state, Message: why}}}
	}
	states := []a2asdk.TaskState{a2asdk.TaskStateFailed, a2asdk.TaskStateRejected, a2asdk.TaskStateInputRequired, a2asdk.TaskStateAuthRequired}
	r.desk.Enqueue(
		ended(states[i%len(states)]),
		ended(a2asdk.TaskState(one)),
		a2a.Reply{Err: &a2a.Error{Code: []int{-32603, -32602, -32001, -31999}[i%4], Message: b.at("agent's error"), Data: map[string]any{one: b.at("agent's data")}}},
		a2a.Reply{Status: peerStatuses[(i+3)%len(peerStatuses)], Body: b.at("agent's page"), Header: headers})
}
