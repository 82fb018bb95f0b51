package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// structuredFlow is a workflow whose node requests data from box/m.
func structuredFlow(id, more string) string {
	return `{"id":"` + id + `","name":"n","version":"1","edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{},"nodes":[` +
		`{"id":"a","typeId":"core.ai.structuredOutput","name":"n","position":{"x":0,"y":0},"inputs":{},"config":{"prompt":"hello","provider":"box","model":"m",` +
		`"outputSchema":{"type":"object","required":["ok"],"properties":{"ok":{"type":"boolean"}}}` + more + `}}]}`
}

// startFlow registers a workflow and starts a run of it.
func startFlow(t *testing.T, c *harness.Client, id, flow string) (runID string) {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", flow)
	require.NoError(t, err)
	require.Less(t, a.Status, http.StatusBadRequest, "%s", a.Body)
	a, err = c.Do(t.Context(), http.MethodPost, "/v1/runs", `{"workflowId":"`+id+`"}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var v struct{ RunID string }
	require.NoError(t, a.JSON(&v))
	return v.RunID
}

func typeLine(events []harness.Event) string {
	var out []string
	for _, e := range events {
		out = append(out, e.Type)
	}
	return strings.Join(out, " ")
}

// replayed forks a run as a replay, and returns the types of its events.
func replayed(t *testing.T, c *harness.Client, runID string) string {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+runID+":fork", `{"fromSeq":0,"mode":"replay"}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var v struct{ RunID string }
	require.NoError(t, a.JSON(&v))
	events, err := c.Finish(t.Context(), v.RunID)
	require.NoError(t, err)
	return typeLine(events)
}

// A server without response formats and tools is called until it accepts the schema in words. A
// replay repeats the events and makes no call.
func TestProviders_StepDownToTheFormThatTheServerAccepts(t *testing.T) {
	t.Parallel()
	needsHost(t)
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), `"response_format"`) || strings.Contains(string(body), `"tools"`) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"response_format and tools are not supported"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"{\"ok\":true}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	c := harness.Start(t, "--provider", "box="+server.URL, "--prompt-observability", "full").Client("dev-key")
	id := startFlow(t, c, "step", structuredFlow("step", ""))
	events, err := c.Finish(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "run.started node.started prompt.composed prompt.composed prompt.composed prompt.composed "+
		"log.appended provider.usage node.completed run.completed", typeLine(events))
	require.Contains(t, string(events[6].Payload), `"schemaForm":"words"`)
	for i, form := range []string{`"schema":`, `"schemaForm":"tool"`, `"schemaForm":"json_object"`, "JSON Schema of the document"} {
		var p struct{ Composed string }
		require.NoError(t, json.Unmarshal(events[2+i].Payload, &p))
		require.Contains(t, p.Composed, form, "the prompt has the form of its schema")
	}
	require.EqualValues(t, 4, calls.Load())
	require.Equal(t, typeLine(events), replayed(t, c, id))
	require.EqualValues(t, 4, calls.Load(), "a replay makes no call")
	_, err = c.Finish(t.Context(), startFlow(t, c, "step", structuredFlow("step", "")))
	require.NoError(t, err)
	require.EqualValues(t, 5, calls.Load(), "the form is remembered")
}

// The next model of the list answers when the first fails; the log names it, and a replay repeats it.
func TestProviders_TheNextModelAnswersWhenOneFails(t *testing.T) {
	t.Parallel()
	needsHost(t)
	var calls atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "settings.json")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `{"providers":{"box":{"baseUrl":%q,"onError":{"models":["sample/sample-1"]}}}}`, server.URL), 0o600))
	policies := filepath.Join(t.TempDir(), "policies.json")
	require.NoError(t, os.WriteFile(policies, []byte(`{"tenants":{"strict":{"sample":{"mode":"disabled"}}}}`), 0o600))
	h := harness.Start(t, "--provider-settings", file, "--provider-policies", policies, "--api-key", "dev-key=default:*", "--api-key", "strict-key=strict:*")
	c := h.Client("dev-key")

	for flow, want := range map[string]string{
		structuredFlow("next", ""): "sample-1",
		structuredFlow("next", `,"onError":{"models":["box/m2","sample/sample-stumbles"]}`): "sample-stumbles",
	} {
		calls.Store(0)
		flow = strings.Replace(flow, `"version":"1"`, `"version":"`+want+`"`, 1)
		id := startFlow(t, c, "next", flow)
		events, err := c.Finish(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, "run.completed", events[len(events)-1].Type, typeLine(events))
		require.NotContains(t, typeLine(events), "substituted")
		var last struct {
			LastError struct {
				Code    string
				Details struct {
					Reason, Provider string
					Next             struct{ Provider, Model string }
				}
			}
		}
		made := calls.Load()
		for _, e := range events {
			if e.Type == "node.retried" {
				require.NoError(t, json.Unmarshal(e.Payload, &last))
			}
		}
		require.Equal(t, "model_failed", last.LastError.Details.Reason)
		require.Equal(t, "box", last.LastError.Details.Provider)
		require.Equal(t, want, last.LastError.Details.Next.Model)
		require.Equal(t, typeLine(events), replayed(t, c, id))
		require.Equal(t, made, calls.Load(), "a replay makes no call")
	}

	strict := h.Client("strict-key")
	events, err := strict.Finish(t.Context(), startFlow(t, strict, "next", structuredFlow("next", "")))
	require.NoError(t, err)
	require.Equal(t, "run.started node.started node.failed run.failed", typeLine(events), "the policy forbids the other model")

	a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", structuredFlow("bad", `,"onError":{"models":["gpt"]}`))
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, a.Status)
	require.Contains(t, string(a.Body), "/nodes/0/config/onError/models/0")
}

// A rate limit is not waited for if there is another model: the next one answers at once. While calls of the
// first model are held, it is not called, and the log says so.
func TestProviders_TheNextModelAnswersInsteadOfAWait(t *testing.T) {
	t.Parallel()
	needsHost(t)
	for name, header := range map[string]string{"a long wait": "3600", "a short wait": "30", "no header": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				if header != "" {
					w.Header().Set("Retry-After", header)
				}
				w.WriteHeader(http.StatusTooManyRequests)
			}))
			t.Cleanup(server.Close)
			c := harness.Start(t, "--provider", "box="+server.URL).Client("dev-key")
			for run := range 3 {
				id := startFlow(t, c, "patience", structuredFlow("patience", `,"onError":{"models":["sample/sample-1"]}`))
				events, err := c.Finish(t.Context(), id)
				require.NoError(t, err)
				require.Equal(t, "run.started node.started node.retried node.started provider.usage node.completed run.completed", typeLine(events))
				retried := string(events[2].Payload)
				require.Contains(t, retried, `"reason":"model_failed"`)
				require.Contains(t, retried, `"delayMs":1,`, "no wait")
				if run > 0 && header != "" {
					require.Contains(t, retried, "no call is made before the time that it named")
				}
				made := calls.Load()
				require.Equal(t, typeLine(events), replayed(t, c, id))
				require.Equal(t, made, calls.Load(), "a replay makes no call")
			}
			if header != "" {
				require.EqualValues(t, 1, calls.Load(), "the others were held")
			}
			require.LessOrEqual(t, calls.Load(), int32(3))
		})
	}
}
