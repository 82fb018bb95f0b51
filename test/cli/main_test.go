// Package cli tests the command line as users use it: the built binary as a process, through pipes
// and a terminal, with a real host. Tests are named after their acceptance checks.
package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// testKey has every scope of its tenant on the shared host.
const testKey = "hk_test_6a1f0c9e5b7d2483"

// readerKey may only read runs.
const readerKey = "hk_live_c4a8e2f06b1d7935"

var shared = &harness.Shared{
	Args: []string{
		"--durability", "process", "--test-seams", "--api-key", testKey + "=acme:*", "--api-key", readerKey + "=acme:runs:read",
	},
	Setup: func(h *harness.Host) error { return h.Deploy(workflows, testKey) },
}

func node(id, typ, config, inputs string) string {
	return fmt.Sprintf(`{"id":%q,"typeId":%q,"name":"n","position":{"x":0,"y":0},"config":%s,"inputs":%s}`, id, typ, config, inputs)
}

func definition(id, nodes, variables string) string {
	return fmt.Sprintf(`{"id":%q,"name":"n","version":"1","nodes":[%s],"edges":[],"triggers":[],"variables":[%s],"metadata":{},"settings":{}}`, id, nodes, variables)
}

var workflows = []string{
	definition("noop", node("a", "core.noop", "{}", "{}"), ""),
	definition("fail", node("a", "core.fail", "{}", "{}"), ""),
	definition("echo", node("a", "core.identity", "{}", `{"text":{"type":"variable","variableName":"text"}}`), `{"name":"text","type":"string","required":true}`),
	definition("wait", node("a", "core.delay", "{}", `{"delayMs":{"type":"variable","variableName":"delayMs"}}`), `{"name":"delayMs","type":"number","required":true,"defaultValue":30000}`),
	definition("approve", node("gate", "core.approvalGate", `{"title":"Refund 40 euros?","actions":["accept","reject","refine"]}`, "{}"), ""),
	definition("approve-odd", node("gate/one:first", "core.approvalGate", `{"title":"Odd?","actions":["accept"]}`, "{}"), ""),
	definition("form", node("form", "core.interrupt", `{"kind":"custom","data":{"customKind":"ui.a2ui-surface","payload":{"catalogVersion":"0.9.1","surface":{"components":[`+
		`{"component":"heading","text":"A refund","level":2},{"component":"field.text","id":"why","label":"Why?","required":true},`+
		`{"component":"field.checkbox","id":"twice","label":"Twice"},{"component":"action.button","id":"go","label":"Go","action":{"target":"resume"}}]}}}}`, "{}"), ""),
	definition("approve-two", node("gate", "core.approvalGate", `{"title":"Both of you?","actions":["accept","reject"],"requiredApprovals":2}`, "{}"), ""),
	definition("clarify", node("ask", "core.clarificationGate", `{"questions":[{"id":"q1","question":"Which color?","schema":{"enum":["blue","red"]}},{"id":"q2","question":"How many?"}]}`, "{}"), ""),
	definition("contract", node("asks", "core.ai.callPrompt", `{"provider":"mock","model":"mock-mini","prompt":"sort","envelopeContract":{"accepts":["vendor.waybill.ticket.triage"]}}`, "{}"), ""),
	definition("asked", node("asked", "core.ai.callPrompt", `{"provider":"mock","model":"mock-mini","prompt":"sort","envelopeType":"vendor.waybill.ticket.triage","expectsStreaming":false}`, "{}"), ""),
	definition("corrected", node("asks", "core.ai.callPrompt", `{"provider":"mock","model":"mock-mini","prompt":"sort","envelopeType":"vendor.waybill.ticket.triage"}`, "{}"), ""),
}

func TestMain(m *testing.M) {
	m.Run()
	if log := shared.Close(); strings.Contains(log, "panic") {
		panic("the shared host panicked:\n" + log) // fails the package whatever the tests' results
	}
}

// user is a user with an own home directory.
type user struct {
	t   *testing.T
	env []string
	in  string
}

// at returns a user of a host, with a key.
func at(t *testing.T, url, key string) user {
	t.Helper()
	u := stranger(t)
	u.env = append(u.env, "WAYBILL_URL="+url)
	if key != "" {
		u.env = append(u.env, "WAYBILL_TOKEN="+key)
	}
	return u
}

// stranger returns a user without a configured host.
func stranger(t *testing.T) user {
	t.Helper()
	home := t.TempDir()
	return user{t: t, env: []string{"HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, "config"), "PATH=" + os.Getenv("PATH"), "TERM=xterm"}}
}

// member returns a user of the shared host.
func member(t *testing.T) user {
	t.Helper()
	return at(t, shared.Host(t).HTTP, testKey)
}

// with adds to a user's environment.
func (u user) with(env ...string) user {
	u.env = append(append([]string{}, u.env...), env...)
	return u
}

// typing sets a command's standard input.
func (u user) typing(in string) user {
	u.in = in
	return u
}

// result is the result of a command.
type result struct {
	out, err string
	status   int
}

// cmdTimeout limits a command.
const cmdTimeout = 60 * time.Second

// command prepares a command.
func (u user) command(ctx context.Context, args ...string) *exec.Cmd {
	u.t.Helper()
	cmd := exec.CommandContext(ctx, harness.Binary(u.t), args...)
	cmd.Env = u.env
	return cmd
}

// run runs a command to its end, with pipes on all sides.
func (u user) run(args ...string) result {
	u.t.Helper()
	ctx, cancel := context.WithTimeout(u.t.Context(), cmdTimeout)
	defer cancel()
	cmd := u.command(ctx, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(u.in), &out, &errs
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		u.t.Fatalf("run %v: %v", args, err)
	}
	require.NoError(u.t, ctx.Err(), "%v did not end\n%s%s", args, out.String(), errs.String())
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// ok is run, for a command that must succeed.
func (u user) ok(args ...string) result {
	u.t.Helper()
	r := u.run(args...)
	require.Zero(u.t, r.status, "%v: %s%s", args, r.out, r.err)
	return r
}

// start starts a run without waiting for its end.
func (u user) start(workflow string, more ...string) string {
	u.t.Helper()
	return strings.TrimSpace(u.ok(append([]string{"run", "start", workflow, "-o", "name"}, more...)...).out)
}

// waiting starts a run and waits until it has a question.
func (u user) waiting(workflow string) string {
	u.t.Helper()
	r := u.run("run", "start", workflow, "--wait", "-o", "name")
	require.Equal(u.t, 3, r.status, r.err)
	return strings.TrimSpace(r.out)
}

// unique returns an unused name.
func unique(name string) string { return name + "-" + uuid.NewString() }

// document parses a text of exactly one JSON document.
func document(t *testing.T, text string) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	var v map[string]any
	require.NoError(t, d.Decode(&v), text)
	require.False(t, d.More(), "more than one document: %s", text)
	return v
}

// answers scripts the answers to a node's next model calls.
func answers(t *testing.T, nodeID string, texts ...string) {
	t.Helper()
	type entry struct {
		Content string `json:"content"`
	}
	program := []entry{}
	for _, text := range texts {
		program = append(program, entry{text})
	}
	b, err := json.Marshal(map[string]any{"nodeId": nodeID, "program": program})
	require.NoError(t, err)
	a, err := shared.Host(t).Client(testKey).Do(t.Context(), http.MethodPost, "/v1/host/sample/test/mock-ai/program", string(b))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
}
