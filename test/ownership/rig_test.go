package ownership

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/internal/natslink/natslinktest"
	"waybill.dev/waybill/test/chaos/journal"
	"waybill.dev/waybill/test/harness"
)

const key = "key-acme"

// Workflows of the tests. Each run has its own id as an input.
const (
	askOnce  = "ask-once"
	askTwice = "ask-twice"
	charge   = "charge"
	classify = "classify"
	sleep    = "sleep"
	// branches has a model call, a tool call, and a branch that waits, records a text and then calls a
	// tool, all parallel.
	branches = "branches"
)

// branchWait is the wait of the workflow branches.
const branchWait = 4 * time.Second

// ticket is the kind of envelope that classify asks for.
const (
	ticket       = "vendor.lab.ticket"
	ticketSchema = `{"$schema":"https://json-schema.org/draft/2020-12/schema","x-schemaVersion":1,"type":"object",
		"additionalProperties":false,"required":["category","urgency","nextStep","summary"],"properties":{
		"category":{"type":"string"},"urgency":{"type":"string"},"nextStep":{"type":"string"},"summary":{"type":"string"}}}`
)

func workflow(id, nodes, edges string) string {
	return fmt.Sprintf(`{"id":%q,"name":"n","version":"1","nodes":[%s],"edges":[%s],"triggers":[],"variables":[{"name":"id","type":"string","required":true}],"metadata":{},"settings":{}}`,
		id, nodes, edges)
}

func node(id, typ, config, inputs string) string {
	return fmt.Sprintf(`{"id":%q,"typeId":%q,"name":"n","position":{"x":0,"y":0},"config":%s,"inputs":%s}`, id, typ, config, inputs)
}

func workflows() []string {
	ask := func(id, suffix string) string {
		return node(id, "core.ai.callPrompt", `{"prompt":"Say a word about [id:{{id}}`+suffix+`]."}`, "{}")
	}
	pay := func(id, suffix string) string {
		return node(id, "core.mcp.callTool", `{"server":"bank","tool":"charge","arguments":{"id":"{{id}}`+suffix+`"}}`, `{"id":{"type":"variable","variableName":"id"}}`)
	}
	return []string{
		workflow(branches, ask("a", "-1")+","+pay("b", "-2")+","+node("w", "core.delay", fmt.Sprintf(`{"delayMs":%d}`, branchWait.Milliseconds()), "{}")+","+
			node("v", "core.identity", "{}", `{"x":{"type":"expression","expression":"\"a text that is redacted\""}}`)+","+pay("c", "-3"),
			`{"id":"e1","sourceNodeId":"w","targetNodeId":"v"},{"id":"e2","sourceNodeId":"v","targetNodeId":"c"}`),
		workflow(askOnce, ask("a", ""), ""),
		workflow(askTwice, ask("a", "-1")+","+ask("b", "-2"), `{"id":"e","sourceNodeId":"a","targetNodeId":"b"}`),
		workflow(classify, node("a", "core.ai.callPrompt", `{"envelopeType":"`+ticket+`","turn":"payload","prompt":"File [id:{{id}}]."}`, "{}"), ""),
		workflow(charge, pay("a", ""), ""),
		workflow(sleep, node("a", "core.delay", "{}", "{}"), ""),
	}
}

// rig is a host with several dispatchers.
type rig struct {
	*effects
	nats    *server.Server
	gateway *harness.Host
	// redactor and acceptor record what models say.
	redactor, acceptor *harness.Host
	// dispatchers have the names d0, d1, … in the counts.
	dispatchers []*harness.Host
	// ids has the run of each id that was started.
	ids map[string]string
}

// newRig starts a host. dispatchers are the further arguments of each dispatcher.
func newRig(t *testing.T, s size, dispatchers ...[]string) *rig {
	t.Helper()
	r := &rig{effects: &effects{takes: s.takes}, ids: map[string]string{}}
	r.nats = natslinktest.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir(), MaxPayload: 8 << 20})
	log := []string{"--nats", r.nats.ClientURL()}
	secret := filepath.Join(t.TempDir(), "host.key")
	require.NoError(t, os.WriteFile(secret, []byte(strings.Repeat("k", 64)), 0o600))
	kinds := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(kinds, ticket+".schema.json"), []byte(ticketSchema), 0o600))
	r.redactor = harness.Begin(t, "redactor")
	r.acceptor = harness.Begin(t, "acceptor", slices.Concat(log, []string{"--redactor", r.redactor.GRPC, "--kinds", kinds})...)
	events := harness.Begin(t, "eventlog", append(log, "--data-dir", t.TempDir())...)
	peers := slices.Concat(log, []string{"--redactor", r.redactor.GRPC, "--acceptor", r.acceptor.GRPC, "--eventlog", events.GRPC, "--host-key-file", secret})
	all := []*harness.Host{r.redactor, r.acceptor, events}
	var at []string
	for i, more := range dispatchers {
		args := slices.Concat(peers, []string{
			"--provider", "lab=" + r.model(t, name(i)), "--default-model", "lab/" + modelName, "--mcp-server", "bank=" + r.tool(t, name(i)),
			"--log-level", "info", // draining is logged
		}, more)
		if s.slots > 0 {
			args = append(args, "--max-runs", strconv.Itoa(s.slots))
		}
		d := harness.Begin(t, "dispatcher", args...)
		r.dispatchers, at = append(r.dispatchers, d), append(at, d.GRPC)
	}
	r.gateway = harness.Begin(t, "gateway", slices.Concat(peers, []string{
		"--dispatcher", strings.Join(at, ","), "--http-addr", "127.0.0.1:0", "--audit=false", "--api-key", key + "=acme:*", "--start-delay=0",
	})...)
	for _, h := range slices.Concat(all, r.dispatchers, []*harness.Host{r.gateway}) {
		h.Await()
	}
	require.NoError(t, r.gateway.Deploy(workflows(), key))
	return r
}

// same is n dispatchers with the same arguments.
func same(n int, args ...string) [][]string {
	return slices.Repeat([][]string{args}, n)
}

// name is the name of a dispatcher in the counts.
func name(i int) string { return fmt.Sprint("d", i) }

// parallel is how many clients act at the same time.
const parallel = 16

// start starts n runs of a workflow.
func (r *rig) start(t *testing.T, workflow string, n int) {
	t.Helper()
	first := len(r.ids)
	runs := make([]string, n)
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(parallel)
	for i := range runs {
		g.Go(func() (err error) {
			runs[i], err = r.create(ctx, workflow, id(first+i))
			return err
		})
	}
	require.NoError(t, g.Wait())
	for i, run := range runs {
		r.ids[id(first+i)] = run
	}
}

func id(n int) string { return fmt.Sprintf("p%05d", n) }

// patience is how long a client retries.
const patience = 10 * time.Minute

// retry calls do every 50 ms until it succeeds. It returns the last error.
func retry(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := do(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// create starts one run. Its idempotency key makes a retry safe.
func (r *rig) create(ctx context.Context, workflow, id string) (run string, err error) {
	return r.createWith(ctx, workflow, id, fmt.Sprintf(`{"id":%q}`, id))
}

// createWith starts one run with inputs.
func (r *rig) createWith(ctx context.Context, workflow, id, inputs string) (run string, err error) {
	c := r.gateway.Client(key)
	c.HTTP.Transport = http.DefaultTransport
	return run, retry(ctx, func(ctx context.Context) error {
		a, err := c.Do(ctx, http.MethodPost, "/v1/runs", fmt.Sprintf(`{"workflowId":%q,"inputs":%s}`, workflow, inputs), "Idempotency-Key", id)
		if err != nil {
			return err
		}
		if a.Status != http.StatusCreated && a.Status != http.StatusOK {
			return fmt.Errorf("create: %d %s", a.Status, a.Body)
		}
		var created struct{ RunID string }
		err = a.JSON(&created)
		run = created.RunID
		return err
	})
}

// end waits for the end of a run and returns its events.
func (r *rig) end(ctx context.Context, run string) (events []harness.Event, err error) {
	c := r.gateway.Client(key)
	return events, retry(ctx, func(ctx context.Context) (err error) {
		events, err = c.Finish(ctx, run)
		return err
	})
}

// completed waits until all runs have completed, and returns the events by id.
func (r *rig) completed(t *testing.T) map[string][]harness.Event {
	t.Helper()
	type result struct {
		id     string
		events []harness.Event
	}
	results := make(chan result, len(r.ids))
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(parallel)
	for id, run := range r.ids {
		g.Go(func() error {
			events, err := r.end(ctx, run)
			if err == nil && len(events) == 0 {
				err = errors.New("no events")
			}
			if err != nil {
				return fmt.Errorf("%s, run %s: %w", id, run, err)
			}
			results <- result{id, events}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	close(results)
	out := map[string][]harness.Event{}
	for got := range results {
		last := got.events[len(got.events)-1]
		assert.Equal(t, "run.completed", last.Type, "%s: %s", got.id, last.Raw)
		journal.CheckLog(t, r.ids[got.id], "", got.events)
		out[got.id] = got.events
	}
	require.False(t, t.Failed(), "all runs complete")
	return out
}

// busy waits until a dispatcher has at least n calls in progress.
func (r *rig) busy(t *testing.T, dispatcher, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return r.active(name(dispatcher)) >= n }, time.Minute, 5*time.Millisecond,
		"dispatcher %d has %d calls in progress", dispatcher, n)
}
