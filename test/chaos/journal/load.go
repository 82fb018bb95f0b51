package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// GateWorkflow waits for an approval.
const GateWorkflow = "chaos-gate"

var workflows = map[string]string{
	"chaos-one":   define("chaos-one", node("a", "core.noop", "{}")),
	"chaos-three": define("chaos-three", node("a", "core.noop", "{}"), node("b", "core.identity", "{}"), node("c", "core.noop", "{}")),
	"chaos-delay": define("chaos-delay", node("a", "core.delay", `{"ms":120}`), node("b", "core.noop", "{}")),
	GateWorkflow:  define(GateWorkflow, node("gate", "core.approvalGate", `{"title":"t","actions":["accept","reject"]}`), node("b", "core.noop", "{}")),
}

// define returns a workflow of consecutive nodes.
func define(id string, nodes ...string) string {
	var edges []string
	for i := range nodes[1:] {
		edges = append(edges, fmt.Sprintf(`{"id":"%d","sourceNodeId":%q,"targetNodeId":%q}`, i, nodeID(nodes[i]), nodeID(nodes[i+1])))
	}
	return fmt.Sprintf(`{"id":%q,"name":"n","version":"1","nodes":[%s],"edges":[%s],"triggers":[],"variables":[],"metadata":{},"settings":{}}`,
		id, strings.Join(nodes, ","), strings.Join(edges, ","))
}

func node(id, typ, config string) string {
	return fmt.Sprintf(`{"id":%q,"typeId":%q,"name":"n","position":{"x":0,"y":0},"config":%s,"inputs":{}}`, id, typ, config)
}

func nodeID(doc string) string {
	var n struct{ ID string }
	_ = json.Unmarshal([]byte(doc), &n) // our own documents
	return n.ID
}

// requests are the bodies of the load; triage calls the sample model.
var requests = []string{
	`{"workflowId":"chaos-one"}`, `{"workflowId":"chaos-three","inputs":{"a":1}}`, `{"workflowId":"chaos-delay"}`,
	`{"workflowId":"triage","inputs":{"mail":"I was charged twice for order 12345 and want a refund at once."}}`,
}

// retryAfter is a client's pause after a request without an answer.
const retryAfter = 50 * time.Millisecond

// Deploy registers the workflows of the load.
func Deploy(t testing.TB, host *harness.Host) {
	t.Helper()
	for id, doc := range workflows {
		a, err := host.Client(Key).Do(t.Context(), http.MethodPost, "/v1/workflows", doc)
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, a.Status, "%s: %s", id, a.Body)
	}
}

// Load runs clients until stop is called, which waits for them: workers that create runs, and
// groups that work on one run concurrently.
func (j *Journal) Load(t testing.TB, host *harness.Host, workers, groups int) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { j.create(ctx, t, client(host), w) })
	}
	for g := range groups {
		wg.Go(func() { j.contend(ctx, t, host, workers+g*clientsPerGroup) })
	}
	return func() {
		cancel()
		wg.Wait()
	}
}

func client(host *harness.Host) *harness.Client {
	c := host.Client(Key)
	c.HTTP.Timeout = 5 * time.Second
	return c
}

// create creates runs until ctx ends. A request without an answer is repeated with its key, now or
// after a restart: it must give the same run.
func (j *Journal) create(ctx context.Context, t testing.TB, c *harness.Client, worker int) {
	for n := 0; ctx.Err() == nil; n++ {
		body, key := requests[(worker+n)%len(requests)], ""
		if n%2 == 0 {
			select {
			case key = <-j.lost:
			default:
				key = fmt.Sprintf("k-%d-%d-%d", worker, n, j.now())
			}
			body = requests[len(key)%len(requests)]
		}
		if j.createOne(ctx, t, c, body, key) == "" && key != "" {
			select {
			case j.lost <- key:
			default:
			}
		}
	}
}

// failed records a request with unknown outcome, and pauses.
func (j *Journal) failed(ctx context.Context) {
	j.mu.Lock()
	j.refused++
	j.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-time.After(retryAfter):
	}
}

// createOne creates a run and records it once acknowledged. It returns an empty id otherwise.
func (j *Journal) createOne(ctx context.Context, t testing.TB, c *harness.Client, body, key string) (runID string) {
	var headers []string
	if key != "" {
		headers = []string{"Idempotency-Key", key}
	}
	a, err := c.Do(ctx, http.MethodPost, "/v1/runs", body, headers...)
	switch {
	case ctx.Err() != nil:
		return ""
	case err != nil || a.Status == http.StatusServiceUnavailable:
		j.failed(ctx)
		return ""
	case key != "" && a.Code() == "idempotency_in_flight": // the request whose answer was lost
		j.failed(ctx)
		return ""
	case a.Status != http.StatusCreated:
		t.Errorf("create: %d %s", a.Status, a.Body)
		return ""
	}
	var run struct{ RunID, WorkflowID string }
	if err := a.JSON(&run); err != nil {
		t.Error(err)
		return ""
	}
	j.acknowledged(t, key, run.WorkflowID, run.RunID)
	return run.RunID
}
