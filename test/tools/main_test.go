// Package tools runs a real host with MCP servers and A2A agents, some of them third-party.
package tools

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

func TestMain(m *testing.M) {
	defer harness.Clean()
	m.Run()
}

// needsHost skips tests that start processes under -short.
func needsHost(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
}

// node is a node of a workflow; inputs are the members of a document.
func node(id, typ, config, inputs string) string {
	return `{"id":"` + id + `","typeId":"` + typ + `","name":"` + id + `","position":{"x":0,"y":0},"config":` + config + `,"inputs":{` + inputs + `}}`
}

func edge(from, output, to, input string) string {
	return `{"id":"` + from + `-` + to + `","sourceNodeId":"` + from + `","targetNodeId":"` + to + `","sourceOutput":"` + output + `","targetInput":"` + input + `"}`
}

// write creates a folder with one workflow.
func write(t *testing.T, id, nodes, edges, settings string) string {
	t.Helper()
	dir := t.TempDir()
	doc := `{"id":"` + id + `","name":"` + id + `","version":"1.0.0","nodes":[` + nodes + `],"edges":[` + edges +
		`],"triggers":[],"variables":[],"metadata":{},"settings":` + settings + `}`
	require.True(t, json.Valid([]byte(doc)), doc)
	require.NoError(t, os.WriteFile(filepath.Join(dir, id+".json"), []byte(doc), 0o600))
	return dir
}

// run starts a workflow and waits for its end.
func run(t *testing.T, c *harness.Client, workflow string) []event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := c.Do(ctx, http.MethodPost, "/v1/runs", `{"workflowId":"`+workflow+`"}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var created struct{ RunID string }
	require.NoError(t, a.JSON(&created))
	events, err := c.Finish(ctx, created.RunID)
	require.NoError(t, err)
	out := make([]event, len(events))
	for i, e := range events {
		out[i].Event = e
		require.NoError(t, json.Unmarshal(e.Raw, &out[i]))
		out[i].Event = e
	}
	return out
}

// event is a recorded event with the trust of its content.
type event struct {
	harness.Event

	ContentTrust string `json:"contentTrust"`
}

// of returns the event of a type and a node.
func of(t *testing.T, events []event, typ, nodeID string) event {
	t.Helper()
	var names []string
	for _, e := range events {
		if e.Type == typ && e.NodeID == nodeID {
			return e
		}
		names = append(names, e.Type+" "+e.NodeID+" "+string(e.Payload))
	}
	require.Fail(t, "no "+typ+" of "+nodeID, "%q", names)
	return event{}
}

// outputs returns the outputs of a node.
func outputs(t *testing.T, events []event, nodeID string) map[string]json.RawMessage {
	t.Helper()
	var p struct{ Outputs map[string]json.RawMessage }
	require.NoError(t, json.Unmarshal(of(t, events, "node.completed", nodeID).Payload, &p))
	return p.Outputs
}
