package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// Workflows of the stock, and the API key of each tenant.
const (
	stockNoop = `{"id":"stock-noop","name":"n","version":"1","nodes":[{"id":"a","typeId":"core.noop","name":"a","position":{"x":0,"y":0},"config":{},"inputs":{}}],` +
		`"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`
	stockGate = `{"id":"stock-gate","name":"n","version":"1","nodes":[{"id":"gate","typeId":"core.approvalGate","name":"a","position":{"x":0,"y":0},` +
		`"config":{"title":"t","actions":["accept","reject"]},"inputs":{}}],"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`
)

var stockTenants = map[string]string{"acme": "stock-acme-key-0001", "beta": "stock-beta-key-0001"}

// stock is a small data directory with something in every stream.
type stock struct {
	dir string // parent of the data directory
	// keyed are runs of a repeated key, waiting runs at a gate, long runs with a snapshot.
	keyed, waiting, long map[string]string
	args                 []string
	files                []string // below the folder of the streams
	r                    *rand.Rand
	want                 map[string]string // what is read, by tenant and path
	paths                map[string][]string
}

func newStock(t *testing.T) *stock {
	t.Helper()
	receiver := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusServiceUnavailable) // nor does the host trust it, so that lanes stay
	}))
	t.Cleanup(receiver.Close)
	at, err := url.Parse(receiver.URL)
	require.NoError(t, err)
	address, _, err := net.SplitHostPort(at.Host)
	require.NoError(t, err)
	s := &stock{dir: t.TempDir(), r: harness.Seed(t), paths: map[string][]string{}, keyed: map[string]string{}, waiting: map[string]string{}, long: map[string]string{}}
	s.args = []string{"--webhook-allow", address, "--webhook-allow", address + "/32"}
	for tenant, key := range stockTenants {
		s.args = append(s.args, "--api-key", key+"="+tenant+":*")
	}
	host := harness.StartIn(t, s.dir, s.args...)
	for tenant, key := range stockTenants {
		require.NoError(t, host.Deploy([]string{stockNoop, stockGate, stockLong()}, key))
		s.fill(t, host.Client(key), tenant, receiver.URL)
	}
	for tenant := range stockTenants { // an erasure goes on behind its answer
		require.Eventually(t, func() bool { return !s.contains(t, erasedText+tenant) }, wholeWithin, 50*time.Millisecond)
	}
	host.Stop()
	host.Launch() // makes checkpoints
	for _, key := range stockTenants {
		require.Eventually(t, func() bool {
			a, err := host.Client(key).Do(t.Context(), http.MethodGet, "/v1/audit/verify", "")
			return err == nil && strings.Contains(string(a.Body), `"chk_`)
		}, wholeWithin, 20*time.Millisecond)
	}
	s.want = s.read(t, host)
	host.Kill()
	host.Launch()
	host.Stop()
	require.NoDirExists(t, filepath.Join(host.Dir(), "nats", "damaged"), "neither a stop nor a kill is damage")
	root := s.streams(filepath.Join(s.dir, "data"))
	require.NoError(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		if st, err := e.Info(); err != nil || st.Size() == 0 {
			return err
		}
		name, err := filepath.Rel(root, path)
		s.files = append(s.files, name)
		return err
	}))
	for _, stream := range []string{
		"WAYBILL_RUNS", "WAYBILL_AUDIT", "KV_waybill_workflows", "KV_waybill_annotations", "KV_waybill_webhooks",
		"KV_waybill_webhook_lanes", "KV_waybill_idempotency", "KV_waybill_snapshots", "KV_waybill_claims", "KV_waybill_leases",
	} {
		require.Contains(t, s.files, filepath.Join(stream, "msgs", "1.blk"))
	}
	return s
}

func (*stock) streams(data string) string {
	return filepath.Join(data, "nats", "jetstream", "$G", "streams")
}

// fill uses every part of the API that stores something.
func (s *stock) fill(t *testing.T, c *harness.Client, tenant, hook string) {
	t.Helper()
	post := func(path, body string, headers ...string) *harness.Answer {
		a, err := c.Do(t.Context(), http.MethodPost, path, body, headers...)
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, a.Status, "%s: %s", path, a.Body)
		return a
	}
	post("/v1/webhooks", fmt.Sprintf(`{"url":%q,"events":["run.completed"]}`, hook))
	for i := range 6 {
		workflow := []string{"stock-noop", "stock-gate"}[i%2]
		id := runID(t, post("/v1/runs", fmt.Sprintf(`{"workflowId":%q,"inputs":{"pad":"%s-%d"}}`, workflow, tenant, i), "Idempotency-Key", fmt.Sprint("key-", i)))
		if i == 0 {
			s.keyed[tenant] = id
		}
		post("/v1/runs/"+id+"/annotations", `{"signal":{"kind":"label","label":"good"}}`)
		s.paths[tenant] = append(s.paths[tenant], "/v1/runs/"+id+"/events/poll?timeout=1&lastSequence=-1", "/v1/runs/"+id+"/annotations")
		want := "completed"
		if workflow == "stock-gate" {
			want = "waiting-approval"
		}
		require.Eventually(t, func() bool { return status(t, c, id) == want }, wholeWithin, 5*time.Millisecond)
	}
	s.fillMore(t, c, tenant, post)
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs:bulk-cancel", `{"runIds":["run_none"]}`, "Idempotency-Key", "cancel")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	s.paths[tenant] = append(s.paths[tenant], "/v1/runs?limit=100", "/v1/workflows/stock-noop", "/v1/workflows/stock-gate", "/v1/webhooks", "/v1/audit?limit=20")
}

func status(t *testing.T, c *harness.Client, id string) string {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+id, "")
	if err != nil {
		return ""
	}
	var v struct{ Status string }
	_ = json.Unmarshal(a.Body, &v)
	return v.Status
}

// toData is the way from the folder of the streams to the data directory.
const toData = "../../../../"

// readModel and hostFiles are files of the host itself.
const readModel = "waybill.db"

var hostFiles = []string{readModel, "host.key", "host.key.sum", "audit.key", "audit.key.sum"}

// erasedText is in the inputs of erased runs.
const erasedText = "to-be-erased-"

// stockLong is a workflow with more events than a run has without a snapshot, and a gate at its end.
// Waits end its frames before they are too large to be repaired.
func stockLong() string {
	const steps = 120
	var nodes, edges []string
	for i := range steps {
		kind := `"core.noop","config":{}`
		if i%20 == 0 {
			kind = `"core.delay","config":{"delayMs":1}`
		}
		nodes = append(nodes, fmt.Sprintf(`{"id":"n%d","typeId":%s,"name":"n","position":{"x":0,"y":0},"inputs":{}}`, i, kind))
		edges = append(edges, fmt.Sprintf(`{"id":"e%d","sourceNodeId":"n%d","targetNodeId":"n%d"}`, i, i, i+1))
	}
	edges[steps-1] = fmt.Sprintf(`{"id":"e","sourceNodeId":"n%d","targetNodeId":"gate"}`, steps-1)
	nodes = append(nodes, `{"id":"gate","typeId":"core.approvalGate","name":"a","position":{"x":0,"y":0},"config":{"title":"t","actions":["accept","reject"]},"inputs":{}}`)
	return fmt.Sprintf(`{"id":"stock-long","name":"n","version":"1","nodes":[%s],"edges":[%s],"triggers":[],"variables":[],"metadata":{},"settings":{}}`,
		strings.Join(nodes, ","), strings.Join(edges, ","))
}

const (
	stockKeyed = `{"workflowId":"stock-noop","inputs":{"pad":"%s-0"}}`
	stockScope = `{"workflowId":"stock-gate","scopeId":"one-at-a-time"}`
)

// fillMore makes a run with a snapshot, a claim of a scope, and an erased run.
func (s *stock) fillMore(t *testing.T, c *harness.Client, tenant string, post func(path, body string, headers ...string) *harness.Answer) {
	t.Helper()
	s.long[tenant] = runID(t, post("/v1/runs", `{"workflowId":"stock-long"}`))
	s.waiting[tenant] = runID(t, post("/v1/runs", stockScope, "X-Dedup", "enforce"))
	erased := runID(t, post("/v1/runs", fmt.Sprintf(`{"workflowId":"stock-noop","inputs":{"pad":%q}}`, erasedText+tenant)))
	for id, want := range map[string]string{s.long[tenant]: "waiting-approval", s.waiting[tenant]: "waiting-approval", erased: "completed"} {
		require.Eventually(t, func() bool { return status(t, c, id) == want }, wholeWithin, 5*time.Millisecond)
		s.paths[tenant] = append(s.paths[tenant], "/v1/runs/"+id+"/events/poll?timeout=1&lastSequence=-1")
	}
	a, err := c.Do(t.Context(), http.MethodDelete, "/v1/runs/"+erased, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, a.Status, "%s", a.Body)
}

// contains reports that a block of a stream has a text.
func (s *stock) contains(t *testing.T, text string) bool {
	t.Helper()
	blocks, err := filepath.Glob(strings.ReplaceAll(s.streams(filepath.Join(s.dir, "data")), "$", "[$]") + "/*/msgs/*.blk")
	require.NoError(t, err)
	for _, file := range blocks {
		b, err := os.ReadFile(file)
		if err == nil && bytes.Contains(b, []byte(text)) {
			return true
		}
	}
	return false
}

// goesOnAsBefore continues what was begun: a repeated key finds its run, a scope is in use, and runs
// that wait go on. Of a file that was cut, the log says what is gone.
func (s *stock) goesOnAsBefore(t *testing.T, c injury, client *harness.Client, tenant string, named bool) {
	t.Helper()
	if c.bit < 0 && (named || c.killed) {
		return
	}
	a, err := client.Do(t.Context(), http.MethodPost, "/v1/runs", fmt.Sprintf(stockKeyed, tenant), "Idempotency-Key", "key-0")
	require.NoError(t, err)
	if assert.Equal(t, http.StatusCreated, a.Status, "%s: a repeated key: %s", tenant, a.Body) {
		assert.Equal(t, s.keyed[tenant], runID(t, a), "%s: a repeated key", tenant)
	}
	a, err = client.Do(t.Context(), http.MethodPost, "/v1/runs", stockScope, "X-Dedup", "enforce")
	require.NoError(t, err)
	assert.Equal(t, http.StatusConflict, a.Status, "%s: a scope in use: %s", tenant, a.Body)
	for what, id := range map[string]string{"a waiting run": s.waiting[tenant], "a long run": s.long[tenant]} {
		a, err = client.Do(t.Context(), http.MethodPost, "/v1/runs/"+id+"/interrupts/gate", `{"resumeValue":{"action":"accept"}}`)
		require.NoError(t, err)
		if named && a.Code() == "log_damaged" && strings.HasPrefix(c.file, "WAYBILL_RUNS") {
			continue // a large record is not repaired
		}
		assert.Less(t, a.Status, http.StatusMultipleChoices, "%s: %s: %s", tenant, what, a.Body)
		assert.Eventually(t, func() bool { return status(t, client, id) == "completed" }, startsWithin, 5*time.Millisecond, "%s: %s", tenant, what)
	}
}
