// Package conformance tests a running host against the protocol's wire contract, endpoint by
// endpoint. Everything a client reads is validated against the published schemas, if they are
// available.
package conformance

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// The keys of the shared host. Those of acme share a tenant. The redactor treats them as secrets,
// so they look like keys and not like words.
const (
	testKey   = "hk_test_9f2c6e1b7a5d4038" // acme, all scopes, test-only features
	liveKey   = "hk_live_51e07c3d9b2a4f68" // acme, all scopes
	readerKey = "hk_live_c4a8e2f06b1d7935" // acme, runs:read
	writerKey = "hk_live_2d6b90f1e8c3a754" // acme, runs:create
	otherKey  = "hk_live_7e31d5a0c9f8b246" // beta, all scopes
	quietKey  = "hk_live_b80f4c6e2a9d1357" // gamma, all scopes: used by one test only
	opsKey    = "hk_live_0d64b1a97fe2c853" // acme, in the group ops
	chiefKey  = "hk_live_a92e5c07d3f16b84" // acme, in the role chief, bound to a user
	eraseKey  = "hk_live_5c28e9a1d70b4f36" // epsilon, all scopes: its tenant is erased
	toggleKey = "hk_live_3f9d17b6c05e8a42" // delta, all scopes: its test switches capabilities off
)

// maxBody is the shared host's limit on request bodies.
const maxBody = 64 << 10

var shared = &harness.Shared{
	Args: []string{
		// Process durability: the protocol does not depend on the disk's speed. test/chaos tests
		// durability.
		"--durability", "process", "--test-seams", "--lease", "1s", "--max-request-body-bytes", fmt.Sprint(maxBody),
		"--api-key", testKey + "=acme:*", "--api-key", liveKey + "=acme:*",
		"--api-key", readerKey + "=acme:runs:read", "--api-key", writerKey + "=acme:runs:create",
		"--api-key", opsKey + "=acme:runs:read,approvals:respond,group:ops", "--api-key", chiefKey + "=acme:runs:read,approvals:respond,role:chief,user:u-7",
		"--api-key", otherKey + "=beta:*", "--api-key", quietKey + "=gamma:*", "--api-key", toggleKey + "=delta:*", "--api-key", eraseKey + "=epsilon:*",
	},
	Env: []string{"OPENWOP_CANARY_SECRET_VALUE=" + harness.Canary},
	Setup: func(h *harness.Host) error {
		return h.Deploy(slices.Concat(workflows, asks, families), testKey, otherKey, quietKey)
	},
}

// recordInto is the folder for the runs of these tests, in the form of test/golden; empty records
// none.
var recordInto = flag.String("record", "", "folder for the runs, in the form of test/golden")

// recorded returns the flags of a host whose runs can be recorded.
func recorded() []string {
	if *recordInto == "" {
		return nil
	}
	return []string{"--nats-addr", "127.0.0.1:0"}
}

func TestMain(m *testing.M) {
	flag.Parse()
	shared.Args = append(shared.Args, recorded()...)
	m.Run()
	for _, h := range []*harness.Shared{shared, equipped.host} {
		if *recordInto == "" || h == nil {
			continue
		}
		if err := h.Record(*recordInto, "acme", testKey); err != nil {
			panic(err)
		}
	}
	if log := unequip() + shared.Close(); strings.Contains(log, "panic") {
		panic("a shared host panicked:\n" + log) // fails the package whatever the tests' results
	}
}

func node(id, typ, config, inputs string) string {
	return fmt.Sprintf(`{"id":%q,"typeId":%q,"name":"n","position":{"x":0,"y":0},"config":%s,"inputs":%s}`, id, typ, config, inputs)
}

func edge(from, to string) string {
	return fmt.Sprintf(`{"id":"%s-%s","sourceNodeId":%q,"targetNodeId":%q}`, from, to, from, to)
}

func definition(id, nodes, edges, variables, more string) string {
	return fmt.Sprintf(`{"id":%q,"name":"n","version":"1","nodes":[%s],"edges":[%s],"triggers":[],"variables":[%s],"metadata":{},"settings":{}%s}`,
		id, nodes, edges, variables, more)
}

// workflows are the shared workflows of the tests.
var workflows = []string{
	definition("noop", node("a", "core.noop", "{}", "{}"), "", "", ""),
	definition("three", node("a", "core.noop", "{}", "{}")+","+node("b", "core.noop", "{}", "{}")+","+node("c", "core.noop", "{}", "{}"),
		edge("a", "b")+","+edge("b", "c"), "", ""),
	definition("wait", node("a", "core.delay", "{}", `{"delayMs":{"type":"variable","variableName":"delayMs"}}`), "",
		`{"name":"delayMs","type":"number","required":true,"defaultValue":30000}`, ""),
	definition("wait-two", node("a", "core.delay", "{}", `{"delayMs":{"type":"variable","variableName":"delayMs"}}`)+","+
		node("b", "core.delay", "{}", `{"delayMs":{"type":"static","value":10}}`), edge("a", "b"), `{"name":"delayMs","type":"number","required":true}`, ""),
	definition("held", node("wait", "core.conformance.hold", "{}", `{"delayMs":{"type":"variable","variableName":"delayMs"}}`)+","+
		node("effect", "core.conformance.side-effect", "{}", "{}"), edge("wait", "effect"), `{"name":"delayMs","type":"number","required":true}`, ""),
	definition("fail", node("a", "core.fail", "{}", "{}"), "", "", ""),
	definition("talk", node("ai", "core.ai.callPrompt", "{}", "{}"), "", "", ""),
	definition("nobody", node("ai", "core.ai.callPrompt", `{"provider":"ghost","model":"m","prompt":"hi"}`, "{}"), "", "", ""),
	definition("nameless", node("ai", "core.ai.callPrompt", `{"provider":"sample","model":"ghost","prompt":"hi"}`, "{}"), "", "", ""),
	definition("closed", node("a", "core.noop", "{}", "{}"), "", "",
		`,"configurableSchema":{"type":"object","additionalProperties":false,"properties":{"recursionLimit":{"type":"integer","minimum":1}}}`),
	definition("typed", node("a", "core.noop", "{}", "{}"), "", `{"name":"text","type":"string","required":true}`, ""),
	definition("gated", node("a", "core.dispatch", "{}", "{}"), "", "", ""),
	definition("mocked", node("mocked-node", "core.ai.structuredOutput",
		`{"provider":"mock","model":"mock-mini","outputSchema":{"type":"object","required":["ok"],"properties":{"ok":{"type":"boolean"}}}}`,
		`{"messages":{"type":"static","value":[{"role":"user","content":"go"}]}}`), "", "", ""),
	definition("needy", node("insufficient-node", "conformance.modelCapability.insufficient", "{}", "{}"), "", "", ""),
	definition("asks", node("asking-node", "core.ai.callPrompt",
		`{"provider":"mock","model":"mock-mini","prompt":"sort this mail","envelopeType":"vendor.waybill.ticket.triage"}`, "{}"), "", "", ""),
}

var published struct {
	once    sync.Once
	schemas *harness.Schemas
}

// client calls the shared host and validates what it reads.
func client(t *testing.T, key string) *harness.Client {
	t.Helper()
	h := shared.Host(t)
	published.once.Do(func() {
		// Without the schemas only this validation is skipped, not the test.
		t.Run("published schemas", func(t *testing.T) { published.schemas = harness.LoadSchemas(t) })
	})
	return h.Client(key).Checked(published.schemas)
}

// within limits the time of a test's requests.
func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// do sends a request and requires an answer.
func do(t *testing.T, c *harness.Client, method, path, body string, headers ...string) *harness.Answer {
	t.Helper()
	a, err := c.Do(within(t, patience), method, path, body, headers...)
	require.NoError(t, err)
	return a
}

// created is the answer to a run creation.
type created struct {
	RunID, WorkflowID, Status, EventsURL, StatusURL string
}

// create starts a run.
func create(t *testing.T, c *harness.Client, body string, headers ...string) created {
	t.Helper()
	a := do(t, c, http.MethodPost, "/v1/runs", body, headers...)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var v created
	require.NoError(t, a.JSON(&v))
	return v
}

// patience is the longest wait for a run. A host with the race detector on a busy machine needs much of it.
const patience = 2 * time.Minute

// run executes a run and returns its id and events.
func run(t *testing.T, c *harness.Client, body string) (runID string, all []harness.Event) {
	t.Helper()
	id := create(t, c, body).RunID
	events, err := c.Finish(within(t, patience), id)
	require.NoError(t, err)
	return id, events
}

type snapshot struct {
	RunID, WorkflowID, Status string
	StartedAt, CompletedAt    string
	Inputs, Variables         map[string]json.RawMessage
	Tags                      []string
	Metadata, Configurable    json.RawMessage
	Error                     *struct{ Code, Message string }
	CurrentNodeID             string
	ParentRunID, ParentNodeID string
	ChildRuns                 []struct{ RunID, Status string }
}

func read(t *testing.T, c *harness.Client, id string) snapshot {
	t.Helper()
	a := do(t, c, http.MethodGet, "/v1/runs/"+id, "")
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	var s snapshot
	require.NoError(t, a.JSON(&s))
	return s
}

// await polls a run's snapshot until it has a status.
func await(t *testing.T, c *harness.Client, id string, within time.Duration, statuses ...string) snapshot {
	t.Helper()
	var s snapshot
	require.Eventually(t, func() bool {
		s = read(t, c, id)
		for _, want := range statuses {
			if s.Status == want {
				return true
			}
		}
		return false
	}, within, 10*time.Millisecond, "run %s never became %v", id, statuses)
	return s
}

// names lists the events' types.
func names(events []harness.Event) []string {
	out := make([]string, 0, len(events))
	for _, e := range events {
		out = append(out, e.Type)
	}
	return out
}

// frames reads a stream to its end.
func frames(t *testing.T, c *harness.Client, id, query string, headers ...string) []harness.Frame {
	t.Helper()
	var out []harness.Frame
	a, err := c.Stream(within(t, patience), "/v1/runs/"+id+"/events"+query, func(f harness.Frame) bool {
		if f.Event != "" {
			out = append(out, f)
		}
		return true
	}, headers...)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	return out
}

func kinds(list []harness.Frame) []string {
	out := make([]string, 0, len(list))
	for _, f := range list {
		out = append(out, f.Event)
	}
	return out
}
