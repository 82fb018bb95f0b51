// Package engines tests a host with real engines and with other people's doubles of vendors. Their
// programs are named by variables, which `make integration ONLY=ollama` and `ONLY=aimock` set.
package engines

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/freeport"
	"waybill.dev/waybill/test/harness"
)

func TestMain(m *testing.M) {
	m.Run()
	harness.Clean()
}

// modelfile wraps messages so that a prompt ends with a line break.
const modelfile = `FROM ./tiny.gguf
TEMPLATE """{{ range .Messages }}{{ .Role }}: {{ .Content }}
{{ end }}"""
PARAMETER temperature 0
PARAMETER num_ctx %d
`

// ollama starts Ollama with the tiny model, and returns its address.
func ollama(t *testing.T) string {
	t.Helper()
	binary := os.Getenv("WAYBILL_OLLAMA")
	if binary == "" {
		t.Skip("WAYBILL_OLLAMA is unset: it names the binary of Ollama")
	}
	dir, address := t.TempDir(), freeport.Addr(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tiny.gguf"), tinyModel(), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Modelfile"), fmt.Appendf(nil, modelfile, room), 0o600))
	env := append(os.Environ(), "OLLAMA_HOST="+address, "OLLAMA_MODELS="+filepath.Join(dir, "models"), "HOME="+dir,
		"OLLAMA_CONTEXT_LENGTH="+fmt.Sprint(room), "OLLAMA_NUM_PARALLEL=1", "OLLAMA_KEEP_ALIVE=10m")
	serve := exec.CommandContext(t.Context(), binary, "serve")
	serve.Env, serve.Stdout, serve.Stderr = env, t.Output(), t.Output()
	serve.Cancel = func() error { return serve.Process.Signal(os.Interrupt) }
	require.NoError(t, serve.Start())
	t.Cleanup(func() { _ = serve.Wait() }) // the context has ended
	url := "http://" + address
	require.Eventually(t, func() bool { return status(url+"/api/version") == http.StatusOK }, time.Minute, 50*time.Millisecond, "Ollama listens")
	create := exec.CommandContext(t.Context(), binary, "create", "tiny", "-f", "Modelfile")
	create.Dir, create.Env, create.Stdout, create.Stderr = dir, env, t.Output(), t.Output()
	require.NoError(t, create.Run())
	return url
}

// status returns the status of an address; 0 without an answer.
func status(url string) int {
	res, err := http.Get(url) //nolint:noctx,gosec // a test's own server
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.StatusCode
}

// held is a schema with keywords that a grammar can enforce.
const held = `{"type":"object","additionalProperties":false,"required":["code","kind","count","tags","day"],"properties":{
	"code":{"type":"string","pattern":"^[A-Z]{2}-[0-9]{3}$"},"kind":{"enum":["bug","wish"]},"count":{"type":"integer"},
	"tags":{"type":"array","items":{"type":"string"},"minItems":2,"maxItems":2},"day":{"type":"string","format":"date"}}}`

// interfaces are providers for Ollama's other interfaces.
const interfaces = `{"providers":{
	"messages":{"api":"anthropic","baseUrl":"%[1]s","key":{"env":"ANY_KEY"}},
	"responses":{"api":"openai-responses","baseUrl":"%[1]s/v1"}}}`

// A real engine streams, holds its model to the schema as it is written, counts tokens, and reports a
// model that it does not have.
func TestOllama(t *testing.T) {
	t.Parallel()
	url := ollama(t)
	settings := filepath.Join(t.TempDir(), "providers.json")
	require.NoError(t, os.WriteFile(settings, fmt.Appendf(nil, interfaces, url), 0o600))
	h := harness.StartWith(t, harness.Options{
		Args: []string{"--provider", "ollama=" + url + "/v1", "--default-model", "ollama/tiny", "--provider-settings", settings},
		Env:  []string{"ANY_KEY=any"},
	})
	c := h.Client("dev-key")
	require.NoError(t, h.Deploy([]string{
		flow("text", "core.ai.callPrompt", `{"prompt":"Say it.","temperature":0,"maxTokens":64}`),
		flow("schema", "core.ai.structuredOutput", `{"prompt":"Fill it.","temperature":0,"maxTokens":200,"outputSchema":`+held+`}`),
		flow("short", "core.ai.structuredOutput", `{"prompt":"Fill it.","temperature":0,"maxTokens":4,"outputSchema":`+held+`}`),
		flow("long", "core.ai.callPrompt", `{"prompt":"`+strings.Repeat("far too much ", 200)+`","temperature":0,"maxTokens":32}`),
		flow("unknown", "core.ai.callPrompt", `{"model":"missing","prompt":"Say it.","temperature":0,"maxTokens":32}`),
		flow("text-messages", "core.ai.callPrompt", `{"provider":"messages","model":"tiny","prompt":"Say it.","temperature":0,"maxTokens":64}`),
		flow("text-responses", "core.ai.callPrompt", `{"provider":"responses","model":"tiny","prompt":"Say it.","temperature":0,"maxTokens":64}`),
		flow("schema-responses", "core.ai.structuredOutput", `{"provider":"responses","model":"tiny","prompt":"Fill it.","temperature":0,"maxTokens":200,"outputSchema":`+held+`}`),
		flow("unknown-messages", "core.ai.callPrompt", `{"provider":"messages","model":"missing","prompt":"Say it.","temperature":0,"maxTokens":32}`),
		flow("unknown-responses", "core.ai.callPrompt", `{"provider":"responses","model":"missing","prompt":"Say it.","temperature":0,"maxTokens":32}`),
	}, "dev-key"))

	for _, name := range []string{"text", "text-messages", "text-responses"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, c, name)
			require.Equal(t, "completed", r.status, r.dump)
			require.Equal(t, `"`+spoken+`"`, r.output)
			require.GreaterOrEqual(t, r.count["output.chunk"], 2, "the answer is streamed")
			require.Len(t, r.usage, 1)
			require.Equal(t, len("user: Say it.\n"), r.usage[0].InputTokens, "a token is a byte")
			require.InDelta(t, len(spoken), r.usage[0].OutputTokens, 1)
		})
	}
	for _, name := range []string{"schema", "schema-responses"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, c, name)
			require.Equal(t, "completed", r.status, r.dump)
			require.Len(t, r.usage, 1, "the grammar leaves nothing to correct")
			require.Zero(t, r.count["log.appended"], "the server takes the schema as it is written")
			var got struct {
				Code, Kind, Day string
				Tags            []string
			}
			require.NoError(t, json.Unmarshal([]byte(r.output), &got), r.output)
			require.Regexp(t, `^[A-Z]{2}-[0-9]{3}$`, got.Code)
			require.Len(t, got.Tags, 2)
			require.Regexp(t, `^\d{4}-\d\d-\d\d$`, got.Day)
		})
	}
	t.Run("too short a budget", func(t *testing.T) {
		t.Parallel()
		r := run(t, c, "short")
		require.Equal(t, "failed", r.status, r.dump)
		require.Equal(t, "envelope_truncation_unrecoverable", r.code)
		require.Equal(t, 3, r.count["envelope.truncated"])
		require.Equal(t, []int{4, 8, 16}, []int{r.usage[0].OutputTokens, r.usage[1].OutputTokens, r.usage[2].OutputTokens}, "each attempt has twice the room")
	})
	t.Run("a prompt beyond the window", func(t *testing.T) {
		t.Parallel()
		r := run(t, c, "long")
		require.Equal(t, "completed", r.status, r.dump)
		require.LessOrEqual(t, r.usage[0].InputTokens, room, "Ollama cuts the prompt, and counts what is left")
	})
	for _, name := range []string{"unknown", "unknown-messages", "unknown-responses"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, c, name)
			require.Equal(t, "failed", r.status)
			require.Equal(t, "model_not_supported", r.code, r.message)
			require.Contains(t, r.message, "missing", "the server's own words are quoted")
		})
	}
}

// What `waybill provider test` reports of a real engine, over each of its interfaces. It says no more than what
// the engine did: the tiny model has a vocabulary of its own, and calls no tool.
func TestOllama_IsReportedAsItIs(t *testing.T) {
	t.Parallel()
	url := ollama(t)
	settings := filepath.Join(t.TempDir(), "providers.json")
	require.NoError(t, os.WriteFile(settings, fmt.Appendf(nil, interfaces, url), 0o600))
	for id, form := range map[string]string{"ollama": "json_schema", "responses": "json_schema", "messages": ""} {
		cmd := exec.CommandContext(t.Context(), harness.Binary(t), "provider", "test", id, "--provider", "ollama="+url+"/v1",
			"--provider-settings", settings, "--model", "tiny", "-o", "json")
		cmd.Env = append(os.Environ(), "ANY_KEY=any")
		out, err := cmd.Output()
		var r struct {
			Works      bool
			SchemaForm string
			Checks     []struct {
				Name, Detail string
				OK           bool
			}
		}
		require.NoError(t, json.Unmarshal(out, &r), "%s %v", out, err)
		t.Log(string(out))
		require.Equal(t, form != "", r.Works, "%s", out)
		require.Equal(t, form, r.SchemaForm, "%s", out)
		got := map[string]bool{}
		for _, c := range r.Checks {
			got[c.Name] = c.OK
			require.True(t, c.OK || c.Detail != "", c.Name)
		}
		for _, name := range []string{"text", "stream", "usage"} {
			require.True(t, got[name], "%s of %s: %s", name, id, out)
		}
	}
}

// flow is a workflow of one node.
func flow(id, typ, config string) string {
	return fmt.Sprintf(`{"id":%q,"name":"n","version":"1","nodes":[{"id":"ask","typeId":%q,"name":"n","position":{"x":0,"y":0},"config":%s,"inputs":{}}],
		"edges":[],"triggers":[],"variables":[],"metadata":{}}`, id, typ, config)
}

// outcome is what a run's log has.
type outcome struct {
	status, output, code, message, dump string
	count                               map[string]int
	usage                               []struct{ InputTokens, OutputTokens int }
}

// run starts a run and waits for its end.
func run(t *testing.T, c *harness.Client, workflow string) outcome {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs", fmt.Sprintf(`{"workflowId":%q}`, workflow))
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var started struct{ RunID string }
	require.NoError(t, a.JSON(&started))
	events, err := c.Finish(t.Context(), started.RunID)
	require.NoError(t, err)
	out := outcome{count: map[string]int{}}
	for _, e := range events {
		out.count[e.Type]++
		out.dump += e.Type + " " + string(e.Payload) + "\n"
		var p struct {
			InputTokens, OutputTokens int
			Outputs                   struct{ Output json.RawMessage }
			Error                     struct{ Code, Message string }
		}
		require.NoError(t, json.Unmarshal(e.Payload, &p))
		switch e.Type {
		case "provider.usage":
			out.usage = append(out.usage, struct{ InputTokens, OutputTokens int }{p.InputTokens, p.OutputTokens})
		case "node.completed":
			out.output = string(p.Outputs.Output)
		case "node.failed":
			out.code, out.message = p.Error.Code, p.Error.Message
		case "run.completed", "run.failed":
			out.status = strings.TrimPrefix(e.Type, "run.")
		}
	}
	return out
}
