// Package models tests a running host with the vendors' models: the requests it sends to OpenAI,
// Anthropic and Gemini, how it handles their answers, and what happens to a call when the host is
// killed. Each vendor is a double on a real port that rejects every call without a strict schema.
package models

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// The keys of the shared host. The redactor treats them as secrets, so they look like keys and not
// like words.
const (
	apiKey   = "hk_live_6b1e93d0a7c24f58" // acme
	quietKey = "hk_live_d02c7f4e918ab635" // quiet: its runs do not record substitutions
)

// vendors are the doubles shared by all tests of the package.
var vendors []*vendor

var shared = &harness.Shared{Setup: func(h *harness.Host) error { return h.Deploy(workflows(), apiKey, quietKey) }}

func TestMain(m *testing.M) {
	vendors = openAll()
	addRootKinds(hostFiles)
	dir, err := os.MkdirTemp("", "waybill-models")
	if err == nil {
		err = writeFiles(dir, hostFiles)
	}
	if err != nil {
		panic(err)
	}
	hostDir = dir
	// Process durability: the order of events must not depend on the disk's speed.
	all := append([]*vendor{house}, vendors...)
	shared.Args, shared.Env = append(hostArgs(urls(all)), "--durability", "process", "--api-key", apiKey+"=acme:*", "--api-key", quietKey+"=quiet:*", "--hide-fallback", "quiet"), keys(all)
	m.Run()
	log := shared.Close()
	for _, v := range all {
		v.close()
	}
	_ = os.RemoveAll(dir) // a temporary directory
	if strings.Contains(log, "panic") {
		panic("the shared host panicked:\n" + log) // fails the package whatever the tests' results
	}
}

// hostDir is the directory of hostFiles.
var hostDir string

// hostArgs returns the flags of a host with vendors at these addresses.
func hostArgs(addresses map[string]string) []string {
	args := []string{
		"--lease", "1s", "--kinds", filepath.Join(hostDir, "kinds"), "--packs", filepath.Join(hostDir, "packs"), "--models", filepath.Join(hostDir, "models.json"),
	}
	for id, url := range addresses {
		args = append(args, "--provider", id+"="+url)
	}
	return args
}

func urls(list []*vendor) map[string]string {
	out := map[string]string{}
	for _, v := range list {
		out[v.id] = v.url
	}
	return out
}

func keys(list []*vendor) (env []string) {
	for _, v := range list {
		env = append(env, "WAYBILL_PROVIDER_"+strings.ToUpper(v.id)+"_KEY="+v.key)
	}
	return env
}

func writeFiles(dir string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// answerSchema is the schema of requested answers, as a value and as the payload of kind.
const (
	answerSchema = `{"title":"answer","type":"object","additionalProperties":false,"required":["answer","note"],"properties":{"answer":{"type":"integer"},"note":{"type":["string","null"]}}}`
	kind         = "vendor.acme.answer"
)

// hostFiles are the files that the host reads at its start: a kind, models with round prices, and a
// pack whose nodes look at pictures. The blind models take schemas as tools.
var hostFiles = map[string]string{
	"kinds/" + kind + ".schema.json":     answerSchema,
	"kinds/" + taskKind + ".schema.json": taskSchema,
	"models.json": `{"version":1,"asOf":"2026-01-31","models":[` + listed("openai", "gpt-4o", "gpt-4o-mini") + `,` +
		listed("anthropic", "claude-opus-4-6", "claude-haiku-4-5") + `,` + listed("gemini", "gemini-2.5-flash", "gemini-2.5-flash-lite") + `,` + listed("house", "house-7b", "house-7b-tools") + `]}`,
	"packs/look/pack.json": `{"name":"vendor.acme.look","version":"1.0.0","engines":{"openwop":">=1.0"},"runtime":{"language":"remote","entry":"none"},"nodes":[` +
		looker("openai", "openai", "gpt-4o") + `,` + looker("anthropic", "anthropic", "claude-opus-4-6") + `,` + looker("gemini", "gemini", "gemini-2.5-flash") + `,` +
		looker("missing", "anthropic", "claude-haiku-4-5") + `]}`,
	"packs/look/waybill.json": `{"nodes":{"vendor.acme.look.openai":` + looks + `,"vendor.acme.look.anthropic":` + looks + `,"vendor.acme.look.gemini":` + looks +
		`,"vendor.acme.look.missing":` + looks + `}}`,
	"packs/look/answer.json": answerSchema,
}

// Prices, in dollars per million tokens.
const (
	inputPrice  = 2
	outputPrice = 10
)

func listed(provider, seeing, blind string) string {
	const entry = `{"provider":%q,"model":%q,"capabilities":[%s],"contextTokens":128000,"outputTokens":16384,"structuredOutput":%q,"sampling":true,"prices":{"input":%d,"output":%d}}`
	return fmt.Sprintf(entry, provider, seeing, `"structured-output","discriminator-enum","function-calling","vision-input"`, "format", inputPrice, outputPrice) + "," +
		fmt.Sprintf(entry, provider, blind, `"structured-output","discriminator-enum","function-calling"`, "tool", inputPrice, outputPrice)
}

func looker(name, provider, model string) string {
	return fmt.Sprintf(`{"typeId":"vendor.acme.look.%s","version":"1.0.0","category":"chat","role":"side-effect","requiredModelCapabilities":["vision-input"],
		"fallbackModel":{"provider":%q,"model":%q}}`, name, provider, model)
}

const looks = `{"base":"core.ai.structuredOutput","config":{"maxTokens":64},"configRefs":{"outputSchema":"answer.json"}}`

// node is a node of a workflow.
func node(id, typ, config, inputs string) string {
	return fmt.Sprintf(`{"id":%q,"typeId":%q,"name":"n","position":{"x":0,"y":0},"config":%s,"inputs":%s}`, id, typ, config, inputs)
}

// workflow returns a workflow of one node, whose failed call is retried once. The run's input
// selects the case.
func workflow(id, node string) string {
	return fmt.Sprintf(`{"id":%q,"name":"n","version":"1","nodes":[%s],"edges":[],"triggers":[],"variables":[{"name":"case","type":"string","required":true}],"metadata":{},"settings":{"maxRetries":1}}`, id, node)
}

// question is the prompt of every model call; the case selects its answers.
const question = `[case:{{case}}] What is six times seven?`

// shapes are the ways a node can request its answer.
var shapes = map[string]struct{ typ, config string }{
	"value":    {"core.ai.structuredOutput", `"outputSchema":` + answerSchema},
	"envelope": {"core.ai.callPrompt", `"envelopeType":"` + kind + `"`},
}

func workflows() (out []string) {
	for shape, s := range shapes {
		for name, streams := range map[string]bool{"streamed": true, "whole": false} {
			config := fmt.Sprintf(`{"prompt":%q,"maxTokens":%d,"stop":["END"],"expectsStreaming":%t,%s}`, question, budget, streams, s.config)
			out = append(out, workflow(shape+"-"+name, node("ask", s.typ, config, "{}")))
		}
	}
	for _, id := range []string{"openai", "anthropic", "gemini"} {
		out = append(out, workflow("look-"+id, node("look", "vendor.acme.look."+id, `{"prompt":"`+question+`"}`, `{"messages":{"type":"static","value":[
			{"role":"user","content":[{"type":"text","text":"Look."},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]}]}}`)))
	}
	for shape, s := range shapes {
		config := fmt.Sprintf(`{"prompt":%q,"partials":true,%s}`, question, s.config)
		out = append(out, workflow(shape+"-partials", node("ask", s.typ, config, "{}")))
	}
	out = append(append(out, rootWorkflows()...), answerWorkflows()...)
	return append(out, workflow("talk", node("ask", "core.ai.callPrompt", `{"prompt":"`+question+`"}`, "{}")))
}

// budget is the output token limit of the workflows.
const budget = 64

var published struct {
	once    sync.Once
	schemas *harness.Schemas
}

// checked makes a client validate everything it reads.
func checked(t *testing.T, c *harness.Client) *harness.Client {
	t.Helper()
	published.once.Do(func() {
		// Without the schemas only this validation is skipped, not the test.
		t.Run("published schemas", func(t *testing.T) { published.schemas = harness.LoadSchemas(t) })
	})
	return c.Checked(published.schemas)
}

// client calls the shared host.
func client(t *testing.T, key string) *harness.Client {
	t.Helper()
	return checked(t, shared.Host(t).Client(key))
}

// within limits the time of a test's requests.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// asks returns the body that starts a run.
func asks(workflow, name string, v *vendor, model, more string) string {
	return fmt.Sprintf(`{"workflowId":%q,"inputs":{"case":%q},"configurable":{"ai.provider":%q,"ai.model":%q%s}}`, workflow, name, v.id, model, more)
}

// start starts a run.
func start(t *testing.T, c *harness.Client, body string) string {
	t.Helper()
	a, err := c.Do(within(t, 30*time.Second), http.MethodPost, "/v1/runs", body)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var v struct{ RunID string }
	require.NoError(t, a.JSON(&v))
	return v.RunID
}

// finish waits for a run's end.
func finish(t *testing.T, c *harness.Client, id string) []harness.Event {
	t.Helper()
	events, err := c.Finish(within(t, 90*time.Second), id)
	require.NoError(t, err)
	return events
}
