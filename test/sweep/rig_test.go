package sweep

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"waybill.dev/waybill/test/double/otlp"
	"waybill.dev/waybill/test/harness"
)

// sinks holds the bytes that left the host, by output.
type sinks struct {
	mu  sync.Mutex // guards the fields below
	all map[string]*bytes.Buffer
}

// add records bytes of an output. Two additions are never joined to one text.
func (s *sinks) add(where string, b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[where] == nil {
		s.all[where] = &bytes.Buffer{}
	}
	s.all[where].Write(b)
	s.all[where].WriteByte('\n')
}

func (s *sinks) answer(where string, a *harness.Answer) {
	s.add(where, a.Body)
	for name, values := range a.Header {
		s.add(where+" headers", []byte(name+": "+strings.Join(values, ",")))
	}
}

// output is the process's output, complete and in order.
type output struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

// Write appends the process's output.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.b.Bytes())
}

// ledger counts the planted texts and their fates, so that omissions are visible.
type ledger struct{ planted, started, finished, refused, proved, panicked int }

// rig is a host, the texts planted in it, and its recorded outputs.
type rig struct {
	*sinks
	ledger
	doubles

	t      *testing.T
	host   *harness.Host
	client *harness.Client
	conn   *grpc.ClientConn
	spans  *otlp.Collector
	asks   []*server
	out    *output
	// blind: the secrets are not registered, so nothing is replaced.
	blind bool
	// runs are all runs that were started.
	runs []string
	// thoughts are the reasoning texts of the last run, by node.
	thoughts map[string]thoughts
	// ref, when set, names the tenant's own keys for new runs.
	ref string
	// gated were planted in model names, which the log records.
	gated []batch
	// inbox receives the webhook deliveries of runs with its tag.
	inbox *inbox
	// awaited counts, by run, the events already checked by await.
	awaited map[string]int
	// noted were planted in notes of the log, audited in the audit log.
	noted, audited []planted
}

// planted is a batch with its place.
type planted struct {
	batch
	place string
}

// Secrets that the host gets without a file.
const (
	apiKey    = "hk_test_sweep_0123456789/x~y"
	vendorKey = "vk/Sweep~9f2c6e1b+7a5d4038=="
	claudeKey = "sk-ant-Sweep_6d2b90f1/c4e7a835"
	geminiKey = "AIzaSweep-1f7b3c9e0d5a48-26_e"
	toolsKey  = "mt.Sweep=5b8e2d7f~904c1a63+"
	deskKey   = "at&Sweep<3c6f0e9a>d18b7245"
	canary    = "canary-sweep-51e07c3d9b2a4f68"
)

// own returns the host's own secrets, with the ids it gives them.
func own() []secret {
	return []secret{{"api-key-1", apiKey}, {"provider-vendor", vendorKey}, {"provider-anthropic", claudeKey}, {"provider-gemini", geminiKey}, {"mcp-tools", toolsKey}, {"a2a-desk", deskKey}, {canarySecret, canary}}
}

// broken writes a folder of definitions that the host cannot load and logs, with one secret in
// each.
func broken(t *testing.T, batches []batch) string {
	t.Helper()
	dir := t.TempDir()
	for i, b := range batches {
		for k, it := range b.items {
			doc := workflow("broken", node("n", "core.noop", "{}", `{`+mustJSON(it.text)+`:{"type":"expression","expression":"1 +"}}`))
			require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d-%d.json", i, k)), []byte(doc), 0o600))
		}
	}
	return dir
}

// start starts a host with the registered secrets.
func start(t *testing.T, secrets []secret, batches []batch, args ...string) *rig {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, starts a real process: run without -short")
	}
	r := &rig{sinks: &sinks{all: map[string]*bytes.Buffer{}}, t: t, spans: otlp.New(), out: &output{}, awaited: map[string]int{}}
	t.Cleanup(r.spans.Close)
	r.openDoubles(batches)
	args = append(args, "--provider", "vendor="+r.vendor.URL(), "--provider", "anthropic="+r.claude.URL(), "--provider", "gemini="+r.gemini.URL(),
		"--mcp-server", "tools="+r.tools.URL(), "--a2a-agent", "desk="+r.desk.URL(), "--packs", packs(t),
		"--prompts", templates(t, append(slices.Clone(batches), tenantBatches()...)), "--prompt-observability", "full", "--credentials", credentials(t))
	args = append(args, "--test-seams", "--kinds", kinds(t), "--workflows", broken(t, batches), "--log-level", "debug", "--metrics-addr", "127.0.0.1:0", "--nats-addr", "127.0.0.1:0", "--durability", "process",
		"--otlp-endpoint", r.spans.URL(), "--trace-ratio", "1", "--api-key", apiKey+"=acme:*")
	if len(secrets) > 0 {
		args = append(args, "--secrets-file", secretsFile(t, secrets))
	}
	r.host = harness.StartWith(t, harness.Options{
		Args: args, Output: r.out, Env: []string{
			"WAYBILL_PROVIDER_VENDOR_KEY=" + vendorKey, "WAYBILL_PROVIDER_ANTHROPIC_KEY=" + claudeKey, "WAYBILL_PROVIDER_GEMINI_KEY=" + geminiKey,
			"WAYBILL_MCP_TOOLS_TOKEN=" + toolsKey, "WAYBILL_A2A_DESK_TOKEN=" + deskKey, "OPENWOP_CANARY_SECRET_VALUE=" + canary,
			"OPENWOP_WEBHOOK_ALLOW_PRIVATE=true", // the receivers run on this machine
		},
	})
	r.client = r.host.Client(apiKey)
	var err error
	r.conn, err = grpc.NewClient(r.host.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.conn.Close() })
	return r
}

func secretsFile(t *testing.T, secrets []secret) string {
	t.Helper()
	values := map[string]string{}
	for _, s := range secrets {
		values[s.id] = s.value
	}
	doc, err := json.Marshal(values) // JSON is YAML
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "secrets.yaml")
	require.NoError(t, os.WriteFile(file, doc, 0o600))
	return file
}

func (r *rig) do(method, path, body string, headers ...string) *harness.Answer {
	r.t.Helper()
	return r.as(r.client, method, path, body, headers...)
}

func (r *rig) as(c *harness.Client, method, path, body string, headers ...string) *harness.Answer {
	r.t.Helper()
	return r.into("REST", c, method, path, body, headers...)
}

// into sends a request and records the answer in a sink.
func (r *rig) into(where string, c *harness.Client, method, path, body string, headers ...string) *harness.Answer {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 30*time.Second)
	defer cancel()
	a, err := c.Do(ctx, method, path, body, headers...)
	require.NoError(r.t, err)
	r.answer(where, a)
	return a
}

// refuse sends a request that must be rejected, which proves that it arrived.
func (r *rig) refuse(method, path, body string, headers ...string) *harness.Answer {
	r.t.Helper()
	a := r.do(method, path, body, headers...)
	require.GreaterOrEqual(r.t, a.Status, http.StatusBadRequest, "%s %s %s: %s", method, path, body, a.Body)
	require.Less(r.t, a.Status, http.StatusInternalServerError, "%s %s %s: %s", method, path, body, a.Body)
	r.refused++
	return a
}

// reject is refuse for requests about existing runs. A tenant's own keys are secrets in the content
// of its runs, but not in the errors of its callers.
func (r *rig) reject(method, path, body string) {
	r.t.Helper()
	if r.ref == "" {
		r.refuse(method, path, body)
	}
}

// prove fails unless the documents show that the batch arrived at the places.
func (r *rig) prove(b batch, docs string, places ...string) {
	r.t.Helper()
	if r.blind {
		return // see TestSweep_FindsSimulatedLeaks
	}
	for _, place := range places {
		require.Empty(r.t, b.missing(place, docs), "%s, %s: a secret did not arrive, or was not replaced by its marker", place, b.name)
		r.proved += len(b.items)
	}
}
