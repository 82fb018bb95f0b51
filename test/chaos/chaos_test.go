// Package chaos kills the host while it works, again and again, and holds what
// it finds afterwards against a journal that only an outsider can keep: what was
// acknowledged.
package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// defaultKills is for `go test`; CI and `make chaos` set CHAOS_KILLS.
const defaultKills = 10

func kills(t *testing.T) int {
	t.Helper()
	v := os.Getenv("CHAOS_KILLS")
	if v == "" {
		return defaultKills
	}
	n, err := strconv.Atoi(v)
	require.NoError(t, err)
	return n
}

func seed(t *testing.T) *rand.Rand {
	t.Helper()
	s := uint64(time.Now().UnixNano())
	if v := os.Getenv("CHAOS_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		require.NoError(t, err)
		s = n
	}
	t.Logf("CHAOS_SEED=%d", s)
	return rand.New(rand.NewPCG(s, 1)) //nolint:gosec // G404: reproducible on purpose
}

// journal is what was acknowledged: run ids, and for keyed requests the run id
// that a key stands for.
type journal struct {
	mu    sync.Mutex
	runs  map[string]string // run id → workflow
	keyed map[string]string // key → run id
}

func (j *journal) acknowledge(t *testing.T, key, workflow, runID string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.runs[runID] = workflow
	if key == "" {
		return
	}
	if was, ok := j.keyed[key]; ok && was != runID {
		t.Errorf("key %s stood for run %s and now stands for %s", key, was, runID)
	}
	j.keyed[key] = runID
}

func (j *journal) snapshot() map[string]string {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make(map[string]string, len(j.runs))
	for k, v := range j.runs {
		out[k] = v
	}
	return out
}

var workflows = map[string]string{
	"chaos-one":   `{"id":"chaos-one","name":"one","version":"1","nodes":[` + node("a", "core.noop", "{}") + `],"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`,
	"chaos-three": `{"id":"chaos-three","name":"three","version":"1","nodes":[` + node("a", "core.noop", "{}") + "," + node("b", "core.identity", "{}") + "," + node("c", "core.noop", "{}") + `],"edges":[{"id":"1","sourceNodeId":"a","targetNodeId":"b"},{"id":"2","sourceNodeId":"b","targetNodeId":"c"}],"triggers":[],"variables":[],"metadata":{},"settings":{}}`,
	"chaos-delay": `{"id":"chaos-delay","name":"delay","version":"1","nodes":[` + node("a", "core.delay", `{"ms":120}`) + "," + node("b", "core.noop", "{}") + `],"edges":[{"id":"1","sourceNodeId":"a","targetNodeId":"b"}],"triggers":[],"variables":[],"metadata":{},"settings":{}}`,
}

func node(id, typ, config string) string {
	return fmt.Sprintf(`{"id":%q,"typeId":%q,"name":"n","position":{"x":0,"y":0},"config":%s,"inputs":{}}`, id, typ, config)
}

// requests are the bodies that load is made of; triage calls the sample model.
var requests = []string{
	`{"workflowId":"chaos-one"}`, `{"workflowId":"chaos-three","inputs":{"a":1}}`, `{"workflowId":"chaos-delay"}`,
	`{"workflowId":"triage","inputs":{"mail":"I was charged twice for order 12345 and want a refund at once."}}`,
}

// load creates runs until ctx ends. A request that got no answer is repeated
// under its key, now or after a restart: it must stand for one run.
func load(ctx context.Context, t *testing.T, host *harness.Host, j *journal, worker int, pending chan string) {
	c := host.Client("dev-key")
	c.HTTP.Timeout = 5 * time.Second
	for n := 0; ctx.Err() == nil; n++ {
		body, key := requests[(worker+n)%len(requests)], ""
		if n%2 == 0 {
			select {
			case key = <-pending: // one whose answer was lost
			default:
				key = fmt.Sprintf("k-%d-%d-%d", worker, n, time.Now().UnixNano())
			}
			body = requests[len(key)%len(requests)]
		}
		var headers []string
		if key != "" {
			headers = []string{"Idempotency-Key", key}
		}
		a, err := c.Do(ctx, http.MethodPost, "/v1/runs", body, headers...)
		if err != nil || a.Status != http.StatusCreated {
			if key != "" {
				select {
				case pending <- key:
				default:
				}
			}
			if err == nil && a.Status != http.StatusServiceUnavailable && ctx.Err() == nil {
				t.Errorf("create: %d %s", a.Status, a.Body)
			}
			continue
		}
		var run struct{ RunID, WorkflowID string }
		if err := a.JSON(&run); err != nil {
			t.Error(err)
			return
		}
		j.acknowledge(t, key, run.WorkflowID, run.RunID)
	}
}

func deploy(t *testing.T, host *harness.Host) {
	t.Helper()
	for id, doc := range workflows {
		a, err := host.Client("dev-key").Do(t.Context(), http.MethodPost, "/v1/workflows", doc)
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, a.Status, "%s: %s", id, a.Body)
	}
}

func TestKill_LosesNothingAcknowledgedAndDoublesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("kills real processes; left out under -short")
	}
	r := seed(t)
	host := harness.Start(t, "--lease", "1s")
	deploy(t, host)
	j := &journal{runs: map[string]string{}, keyed: map[string]string{}}
	pending := make(chan string, 1024)
	for i := range kills(t) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() { load(ctx, t, host, j, w, pending) })
		}
		wait(t, time.Duration(20+r.IntN(380))*time.Millisecond)
		host.Kill()
		cancel()
		wg.Wait()
		if i%10 == 9 { // and now and then the read model is damaged, too
			damage(t, filepath.Join(host.Dir(), "waybill.db"), r)
		}
		host.Launch()
	}
	check(t, host, j)
}

// wait lets the host work for a random time: the moment of the kill is what is
// being tested.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// damage overwrites part of a file with noise.
func damage(t *testing.T, file string, r *rand.Rand) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	st, err := f.Stat()
	require.NoError(t, err)
	noise := make([]byte, 4096)
	for i := range noise {
		noise[i] = byte(r.IntN(256))
	}
	_, err = f.WriteAt(noise, r.Int64N(max(st.Size()-4096, 1)))
	require.NoError(t, err)
}

// check holds the journal against the host.
func check(t *testing.T, host *harness.Host, j *journal) {
	t.Helper()
	c := host.Client("dev-key")
	runs := j.snapshot()
	require.NotEmpty(t, runs)
	t.Logf("%d acknowledged runs, %d of them keyed", len(runs), len(j.keyed))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for id, workflow := range runs {
		events, err := c.Finish(ctx, id)
		require.NoError(t, err, "run %s of %s must exist and end", id, workflow)
		checkLog(t, id, workflow, events)
	}
}

// checkLog holds one run's log against the rules that no crash may break.
func checkLog(t *testing.T, id, workflow string, events []harness.Event) {
	t.Helper()
	started, ended, completed := 0, 0, map[string]int{}
	artifacts := 0
	for i, e := range events {
		require.Equal(t, i, e.Sequence, "run %s: sequences are contiguous from 0", id)
		require.Equal(t, id, e.RunID)
		switch e.Type {
		case "run.started":
			started++
		case "run.completed", "run.failed", "run.cancelled":
			ended++
			require.Equal(t, len(events)-1, i, "run %s: the terminal event is the last", id)
		case "node.completed":
			completed[e.NodeID]++
		case "artifact.created":
			artifacts++
		}
	}
	require.Equal(t, 1, started, "run %s: run.started exists once", id)
	require.Equal(t, 1, ended, "run %s ends once", id)
	for n, count := range completed {
		require.Equal(t, 1, count, "run %s: node %s completed once", id, n)
	}
	if workflow == "triage" {
		require.Equal(t, 1, artifacts, "run %s: one accepted envelope\n%s", id, types(events))
	}
}

func types(events []harness.Event) string {
	var out []string
	for _, e := range events {
		out = append(out, e.Type)
	}
	return strings.Join(out, " ")
}

func TestFullDisk_RefusesHonestlyAndLosesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a file system; left out under -short")
	}
	for name, afterwards := range map[string]func(host *harness.Host){
		"and is started again":     func(host *harness.Host) { host.Kill(); host.Launch() },
		"and recovers when let be": func(*harness.Host) {},
	} {
		t.Run(name, func(t *testing.T) { fullDisk(t, afterwards) })
	}
}

func fullDisk(t *testing.T, afterwards func(host *harness.Host)) {
	t.Helper()
	dir := t.TempDir()
	mountSmall(t, dir)
	host := harness.StartIn(t, dir)
	deploy(t, host)
	c := host.Client("dev-key")
	filler := filepath.Join(dir, "filler")
	first := create(t, c, `{"workflowId":"chaos-one"}`)
	require.Equal(t, http.StatusCreated, first.Status)
	fill(t, filler)
	refused := false
	var acknowledged []string
	for range 200 {
		a := create(t, c, `{"workflowId":"chaos-one","inputs":{"pad":"`+strings.Repeat("x", 20_000)+`"}}`)
		if a.Status == http.StatusCreated {
			acknowledged = append(acknowledged, runID(t, a))
			continue
		}
		require.Equal(t, http.StatusServiceUnavailable, a.Status, "%s", a.Body)
		require.Equal(t, "service_unavailable", a.Code())
		require.NotEmpty(t, a.Header.Get("Retry-After"))
		refused = true
		break
	}
	require.True(t, refused, "a full disk refuses")
	require.NoError(t, os.Remove(filler))
	afterwards(host)
	c = host.Client("dev-key")
	require.Eventually(t, func() bool {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs", `{"workflowId":"chaos-one"}`)
		return err == nil && a.Status == http.StatusCreated
	}, time.Minute, 100*time.Millisecond, "it goes on once there is space")
	for _, id := range append(acknowledged, runID(t, first)) {
		events, err := c.Finish(t.Context(), id)
		require.NoError(t, err)
		checkLog(t, id, "chaos-one", events)
	}
}

func create(t *testing.T, c *harness.Client, body string) *harness.Answer {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs", body)
	require.NoError(t, err)
	return a
}

func runID(t *testing.T, a *harness.Answer) string {
	t.Helper()
	var v struct{ RunID string }
	require.NoError(t, json.Unmarshal(a.Body, &v))
	return v.RunID
}
