package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	"waybill.dev/waybill/test/double/otlp"
	"waybill.dev/waybill/test/harness"
)

func TestMain(m *testing.M) {
	m.Run()
	harness.Clean()
}

const (
	secretCount = 50
	seams       = "/v1/host/sample/"
)

// makeSecrets gives ids and values of the lengths and signs that credentials have.
func makeSecrets() map[string]string {
	r := rand.New(rand.NewPCG(7, 11)) //nolint:gosec // G404: reproducible on purpose
	const signs = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_+/=<>&%!"
	out := map[string]string{}
	for i := range secretCount {
		b := make([]byte, 12+r.IntN(30))
		for k := range b {
			b[k] = signs[r.IntN(len(signs))]
		}
		out[fmt.Sprintf("planted-%02d", i)] = string(b)
	}
	return out
}

// sinks are the bytes that left the host, by where.
type sinks struct {
	mu  sync.Mutex // guards all
	all map[string][]byte
}

func (s *sinks) add(where string, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[where] = append(append(s.all[where], b...), '\n')
}

func (s *sinks) answer(where string, a *harness.Answer) {
	s.add(where, a.Body)
	for name, values := range a.Header {
		s.add(where+" headers", []byte(name+": "+strings.Join(values, ",")))
	}
}

// rig is a host that knows the secrets, and what it lets out.
type rig struct {
	*sinks
	t       *testing.T
	host    *harness.Host
	client  *harness.Client
	spans   *otlp.Collector
	secrets map[string]string
}

func start(t *testing.T) *rig {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real process; left out under -short")
	}
	r := &rig{sinks: &sinks{all: map[string][]byte{}}, t: t, secrets: makeSecrets(), spans: otlp.New()}
	t.Cleanup(r.spans.Close)
	file := filepath.Join(t.TempDir(), "secrets.yaml")
	doc, err := json.Marshal(r.secrets) // JSON is YAML
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, doc, 0o600))
	r.host = harness.Start(t, "--test-seams", "--secrets-file", file, "--log-level", "debug", "--metrics-addr", "127.0.0.1:0",
		"--otlp-endpoint", r.spans.URL(), "--trace-ratio", "1", "--api-key", "hk_test_sweep_0123456789=acme:*",
		// The first layer alone must do it.
		"--redact-shapes=false")
	r.client = r.host.Client("hk_test_sweep_0123456789")
	return r
}

func (r *rig) do(method, path, body string, headers ...string) *harness.Answer {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	a, err := r.client.Do(ctx, method, path, body, headers...)
	require.NoError(r.t, err)
	r.answer("REST", a)
	return a
}

func workflow(id, nodes string) string {
	return `{"id":"` + id + `","name":"n","version":"1","nodes":[` + nodes + `],"edges":[],"triggers":[],"variables":[{"name":"text","type":"string"}],"metadata":{},"settings":{}}`
}

func node(id, typ, config, inputs string) string {
	return `{"id":"` + id + `","typeId":"` + typ + `","name":"n","position":{"x":0,"y":0},"config":` + config + `,"inputs":` + inputs + `}`
}

func (r *rig) deploy() {
	r.t.Helper()
	for _, doc := range []string{
		workflow("echo", node("a", "core.identity", "{}", `{"text":{"type":"variable","variableName":"text"}}`)),
		workflow("ask", node("sweep-ask", "core.ai.callPrompt", `{"provider":"mock","model":"m","prompt":"sort {{text}}"}`, "{}")),
		workflow("structured", node("sweep-structured", "core.ai.structuredOutput",
			`{"provider":"mock","model":"m","outputSchema":{"type":"object"}}`, `{"messages":{"type":"static","value":[{"role":"user","content":"go"}]}}`)),
	} {
		a := r.do(http.MethodPost, "/v1/workflows", doc)
		require.Equal(r.t, http.StatusCreated, a.Status, "%s", a.Body)
	}
}

// run carries a run out and reads it in every way there is.
func (r *rig) run(workflowID, text string) {
	r.t.Helper()
	body, err := json.Marshal(map[string]any{
		"workflowId": workflowID, "inputs": map[string]any{"text": text, "more": map[string]any{text: []any{text}}},
		"tags": []string{tag(text)}, "metadata": map[string]any{"m": text, text: 1},
	})
	require.NoError(r.t, err)
	a := r.do(http.MethodPost, "/v1/runs", string(body))
	if a.Status != http.StatusCreated {
		return // the answer is in the sinks
	}
	var made struct{ RunID string }
	require.NoError(r.t, a.JSON(&made))
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	events, err := r.client.Finish(ctx, made.RunID)
	require.NoError(r.t, err)
	for _, e := range events {
		r.add("poll", e.Payload)
	}
	for _, path := range []string{"", "/events/poll", "/debug-bundle"} {
		r.do(http.MethodGet, "/v1/runs/"+made.RunID+path, "")
	}
	for _, path := range []string{"test/runs/" + made.RunID + "/events", "test/otel/spans?runId=" + made.RunID} {
		r.do(http.MethodGet, seams+path, "")
	}
	for _, mode := range []string{"values", "debug", "messages", "updates"} {
		_, err := r.client.Stream(ctx, "/v1/runs/"+made.RunID+"/events?streamMode="+mode, func(f harness.Frame) bool {
			r.add("SSE", []byte(f.Event+" "+f.ID+" "+f.Data))
			return true
		})
		require.NoError(r.t, err)
	}
	r.grpc(ctx, made.RunID)
}

// tag is the text as far as tags may be long.
func tag(text string) string { return text[:min(len(text), 60)] }

func (r *rig) grpc(ctx context.Context, runID string) {
	r.t.Helper()
	conn, err := grpc.NewClient(r.host.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(r.t, err)
	defer func() { _ = conn.Close() }()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+r.client.Key)
	var head, tail metadata.MD
	res, err := openwopv1.NewEngineClient(conn).GetRun(ctx, &openwopv1.GetRunRequest{RunId: runID}, grpc.Header(&head), grpc.Trailer(&tail))
	r.message("gRPC", res, err, head, tail)
}

func (r *rig) message(where string, m proto.Message, err error, mds ...metadata.MD) {
	r.t.Helper()
	if m != nil && err == nil {
		b, merr := proto.Marshal(m)
		require.NoError(r.t, merr)
		r.add(where, b)
	}
	if err != nil {
		b, merr := proto.Marshal(status.Convert(err).Proto())
		require.NoError(r.t, merr)
		r.add(where+" errors", b)
		r.add(where+" errors", []byte(err.Error()))
	}
	for _, md := range mds {
		r.add(where+" metadata", fmt.Append(nil, md))
	}
}

// answers program the model: the secrets stand in payloads, keys, labels, ids,
// prose and refusals.
func (r *rig) program(nodeID string, entries ...map[string]any) {
	r.t.Helper()
	b, err := json.Marshal(map[string]any{"nodeId": nodeID, "program": entries})
	require.NoError(r.t, err)
	a := r.do(http.MethodPost, seams+"test/mock-ai/program", string(b))
	require.Equal(r.t, http.StatusOK, a.Status, "%s", a.Body)
}

func envelope(kind string, payload map[string]any, text string) string {
	b, _ := json.Marshal(map[string]any{
		"type": kind, "payload": payload, "correlationId": text, "envelopeId": text,
		"meta": map[string]any{"label": tag(text), "rendering": map[string]any{"title": text}, "source": "ai-generation", "ts": "2026-01-31T12:00:00Z"},
	})
	return string(b)
}

// TestSweep_NoSecretLeaves plants 50 secrets in each of the encodings that the
// redactor knows (OpenWOP envelope contract §11, §25 secret-leakage).
func TestSweep_NoSecretLeaves(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.deploy()
	for _, e := range encodings {
		var parts []string
		for i := range secretCount {
			parts = append(parts, e.write(r.secrets[fmt.Sprintf("planted-%02d", i)]))
		}
		text := strings.Join(parts, " ")
		r.run("echo", text)

		r.program("sweep-ask",
			map[string]any{"content": envelope("error", map[string]any{"code": "x.y", "message": text, "details": map[string]any{text: text}}, text)},
			map[string]any{"content": text}, map[string]any{"content": "and " + text})
		r.run("ask", text)
		r.program("sweep-ask", map[string]any{"content": text, "refusalText": text})
		r.run("ask", text)
		r.program("sweep-structured", map[string]any{"content": text}, map[string]any{"content": "[" + text}, map[string]any{"content": `{"a":` + mustJSON(text) + `}`})
		r.run("structured", text)
		r.program("sweep-structured", map[string]any{"content": `{"cut":` + mustJSON(text)[:len(text)/2], "stopReason": "max_tokens"})
		r.run("structured", text)

		// What is wrong with a request, one secret at a time: they are short there.
		for i := 0; i < secretCount; i += 7 {
			r.wrong(parts[i])
		}
		body, err := json.Marshal(map[string]any{
			"envelope":  json.RawMessage(envelope("error", map[string]any{"code": "x.y", "message": text, text: 1}, "c")),
			"projectTo": map[string]any{"runId": "sweep-" + fmt.Sprint(len(e.name)), "nodeId": "n"},
		})
		require.NoError(t, err)
		r.do(http.MethodPost, seams+"envelope/accept", string(body))
	}
	r.rest()
	r.search()
}

func mustJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// wrong sends requests that are refused.
func (r *rig) wrong(text string) {
	r.t.Helper()
	segment := url.PathEscape(text)
	for _, path := range []string{"/v1/runs/" + segment, "/v1/workflows/" + segment, "/v1/runs/" + segment + "/events", "/schemas/envelopes/" + segment, "/v1/nothing/" + segment, "/v1/runs?status=" + url.QueryEscape(text), "/v1/runs?cursor=" + url.QueryEscape(text)} {
		r.do(http.MethodGet, path, "")
	}
	quotedText := mustJSON(text)
	for _, body := range []string{
		`{"workflowId":` + quotedText + `}`, `{"workflowId":"echo",` + quotedText + `:1}`, `{"workflowId":"echo","inputs":` + quotedText + `}`, `{"workflowId":"echo"` + text,
		`{"workflowId":"echo","inputs":{"text":"x"},"configurable":{"ai.provider":` + quotedText + `}}`,
	} {
		r.do(http.MethodPost, "/v1/runs", body)
	}
	r.do(http.MethodPost, "/v1/workflows", strings.Replace(workflow("bad", node("n", "core.noop", "{}", "{}")), `"settings":{}`, `"settings":{`+quotedText+`:1},`+quotedText+`:1`, 1))
	r.do(http.MethodPost, "/v1/runs", `{"workflowId":"echo","inputs":{"text":"x"}}`, "X-Custom", oneLine(text), "Traceparent", oneLine(text), "X-Force-Engine-Version", oneLine(text))
	wrongKey := *r.client
	wrongKey.Key = oneLine(text)
	a, err := wrongKey.Do(r.t.Context(), http.MethodGet, "/v1/runs", "")
	require.NoError(r.t, err)
	r.answer("REST", a)
}

func oneLine(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '.'
		}
		return c
	}, text)
}

// rest collects what is left when the host has ended.
func (r *rig) rest() {
	r.t.Helper()
	var ready struct{ Metrics string }
	b, err := os.ReadFile(filepath.Join(filepath.Dir(r.host.Dir()), "ready.json"))
	require.NoError(r.t, err)
	require.NoError(r.t, json.Unmarshal(b, &ready))
	res, err := http.Get(ready.Metrics) //nolint:noctx // the test's own host
	require.NoError(r.t, err)
	var metrics bytes.Buffer
	_, err = metrics.ReadFrom(res.Body)
	require.NoError(r.t, err)
	_ = res.Body.Close()
	r.add("metrics", metrics.Bytes())
	require.Eventually(r.t, func() bool { return len(r.spans.Spans()) > len(encodings) }, 30*time.Second, 20*time.Millisecond)
	r.host.Kill()
	r.add("OTLP", r.spans.Bytes())
	r.add("log", []byte(r.host.Log()))
	require.NoError(r.t, filepath.WalkDir(r.host.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path) //nolint:gosec // G122: the test's own directory
		r.add("disk: "+filepath.Base(path), content)
		return err
	}))
}

// search looks for every secret in every encoding in every sink.
func (r *rig) search() {
	r.t.Helper()
	hits, size := 0, 0
	for _, content := range r.all {
		size += len(content)
	}
	require.Greater(r.t, size, 1<<20, "the sinks have something in them")
	require.Contains(r.t, string(r.all["poll"]), "[REDACTED:planted-07]")
	for id, secret := range r.secrets {
		for _, e := range encodings {
			needle := []byte(e.trace(secret))
			for where, content := range r.all {
				if at := bytes.Index(content, needle); at >= 0 && hits < 40 {
					hits++
					r.t.Errorf("%s shows in %s, %s: …%q…", id, where, e.name, content[max(0, at-60):min(len(content), at+len(needle)+20)])
				}
			}
		}
	}
	r.t.Logf("looked for %d secrets in %d encodings in %d MB of %d sinks", len(r.secrets), len(encodings), size>>20, len(r.all))
}
