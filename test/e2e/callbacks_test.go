package e2e

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// publicAddress is the public address of these tests' hosts.
const publicAddress = "https://waybill.example"

// receiver starts an inbox with TLS, and returns the environment in which a host trusts it.
func receiver(t *testing.T, status int) (in *inbox, url string, env []string) {
	t.Helper()
	in = &inbox{status: status}
	s := httptest.NewTLSServer(in)
	t.Cleanup(s.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	return in, s.URL, []string{"SSL_CERT_FILE=" + ca}
}

// letThrough returns the flags of a host that may call this machine.
func letThrough(more ...string) []string {
	return append([]string{"--webhook-allow", "127.0.0.1", "--log-level", "debug", "--lease", "1s", "--public-url", publicAddress, "--api-key", testKey + "=acme:*"}, more...)
}

// asked is the body of a callback.
type asked struct {
	RunID, WorkflowID, Type, Status string
	Sequence                        int
	Interrupt                       struct {
		Kind, NodeID, InterruptID, RequestedAt, InterruptToken, ExpiresAt string
		Payload                                                           struct {
			Kind, Key string
			Data      json.RawMessage
		}
	}
	ResolveURL string
}

func (m mail) asked(t *testing.T) asked {
	t.Helper()
	var a asked
	require.NoError(t, json.Unmarshal(m.body, &a), "%s", m.body)
	return a
}

// of returns the callbacks of a run.
func (b *inbox) of(t *testing.T, runID string) []mail {
	t.Helper()
	return slices.DeleteFunc(b.all(), func(m mail) bool { return m.asked(t).RunID != runID })
}

// asks waits for a run's callback.
func (b *inbox) asks(t *testing.T, runID string) mail {
	t.Helper()
	require.Eventually(t, func() bool { return len(b.of(t, runID)) > 0 }, 30*time.Second, 10*time.Millisecond, "the question of the run is sent")
	return b.of(t, runID)[0]
}

// one is a workflow with one node.
func one(id, typeID, config string) string {
	return fmt.Sprintf(`{"id":%q,"name":%q,"version":"1","nodes":[{"id":"gate","typeId":%q,"name":"g","position":{"x":0,"y":0},"config":%s,"inputs":{}}],
		"edges":[],"triggers":[],"variables":[],"metadata":{},"settings":{}}`, id, id, typeID, config)
}

// questions are workflows with a question, and an answer.
var questions = []struct{ id, typeID, config, kind, status, answer string }{
	{"approve", "core.approvalGate", `{"title":"Ship it?","actions":["accept"]}`, "approval", "waiting-approval", `{"action":"accept"}`},
	{"clarify", "core.clarificationGate", `{"questions":[{"id":"q","question":"color?"}]}`, "clarification", "waiting-input", `{"answers":{"q":"blue"}}`},
	{"event", "core.interrupt", `{"kind":"external-event","data":{"eventType":"paid","correlation":{"order":7}}}`, "external-event", "waiting-external", `{"order":7}`},
	{"custom", "core.interrupt", `{"kind":"custom","data":{"customKind":"sign"}}`, "custom", "waiting-external", `1`},
	{"soon", "core.approvalGate", `{"title":"t","actions":["accept"],"timeoutSec":600}`, "approval", "waiting-approval", `{"action":"accept"}`},
}

func put(t *testing.T, c *harness.Client, definition string) {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/workflows", definition)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
}

// calls creates a run that names a callback URL.
func calls(t *testing.T, c *harness.Client, workflow, url string) string {
	t.Helper()
	return start(t, c, fmt.Sprintf(`{"workflowId":%q,"callbackUrl":%q}`, workflow, url+"/answers/"+workflow))
}

// reply answers by token, without a credential.
func reply(t *testing.T, h *harness.Host, token, value string) *harness.Answer {
	t.Helper()
	a, err := h.Client("").Do(t.Context(), http.MethodPost, "/v1/interrupts/"+token, `{"resumeValue":`+value+`}`)
	require.NoError(t, err)
	return a
}

// OpenWOP host contract §6.5, exposure: each kind of question is sent once to the run's
// callbackUrl, with a token that answers it and appears nowhere else.
func TestCallbacks_SendQuestionsThatATokenAnswers(t *testing.T) {
	t.Parallel()
	needsHost(t)
	in, url, env := receiver(t, http.StatusNoContent)
	var said output
	h := harness.StartWith(t, harness.Options{Args: letThrough(), Env: env, Output: &said})
	c := h.Client(testKey)
	shown := ""
	var tokens []string
	for _, q := range questions {
		put(t, c, one(q.id, q.typeID, q.config))
		id := calls(t, c, q.id, url)
		m := in.asks(t, id)
		a := m.asked(t)
		require.Equal(t, []string{id, q.id, "interrupt.requested", q.status, q.kind, "gate"}, []string{a.RunID, a.WorkflowID, a.Type, a.Status, a.Interrupt.Kind, a.Interrupt.NodeID})
		require.Equal(t, q.kind, a.Interrupt.Payload.Kind)
		require.Equal(t, id+":"+a.Interrupt.InterruptID, m.header.Get("Idempotency-Key"))
		require.Equal(t, publicAddress+"/v1/interrupts/"+a.Interrupt.InterruptToken, a.ResolveURL)
		tokens = append(tokens, a.Interrupt.InterruptToken)

		got := reply(t, h, a.Interrupt.InterruptToken, q.answer)
		require.Equal(t, http.StatusOK, got.Status, "%s", got.Body)
		events, err := c.Finish(within(t, 30*time.Second), id)
		require.NoError(t, err)
		require.Equal(t, "run.completed", events[len(events)-1].Type)
		require.Len(t, in.of(t, id), 1, "asked once")
		require.Equal(t, "interrupt_already_resolved", reply(t, h, a.Interrupt.InterruptToken, q.answer).Code())
		for _, path := range []string{"/v1/runs/" + id, "/v1/runs/" + id + "/events/poll", "/v1/runs/" + id + "/debug-bundle", "/v1/audit"} {
			shown += read(t, c, path)
		}
	}
	callbacks := receivers(t, c)
	require.Len(t, callbacks, 1, "one for the server")
	require.Equal(t, url, callbacks[0].URL)
	shown += read(t, c, "/v1/webhooks/"+callbacks[0].WebhookID+"/deliveries?status=failed") + read(t, c, "/v1/webhooks/"+callbacks[0].WebhookID+"/deliveries?status=pending")
	h.Stop()
	for _, token := range tokens {
		require.NotContains(t, shown, token)
		require.NotContains(t, said.String(), token)
		require.Empty(t, holding(t, h.Dir(), token), "no file of the host has the token")
	}
	require.NotEmpty(t, holding(t, h.Dir(), "Ship it?"), "files can be searched")
}

// A child's question goes to the parent's callback URL.
func TestCallbacks_SendQuestionsOfChildren(t *testing.T) {
	t.Parallel()
	needsHost(t)
	in, url, env := receiver(t, http.StatusNoContent)
	h := harness.StartWith(t, harness.Options{Args: letThrough(), Env: env})
	c := h.Client(testKey)
	put(t, c, one("below", "core.approvalGate", `{"title":"Ship it?","actions":["accept"]}`))
	put(t, c, one("above", "core.subWorkflow", `{"workflowId":"below"}`))
	id := calls(t, c, "above", url)
	require.Eventually(t, func() bool { return len(in.all()) > 0 }, 30*time.Second, 10*time.Millisecond, "the question of the child is sent")
	a := in.all()[0].asked(t)
	require.Equal(t, asker(t, c, id), a.RunID)
	require.Equal(t, "below", a.WorkflowID)
	require.Equal(t, http.StatusOK, reply(t, h, a.Interrupt.InterruptToken, `{"action":"accept"}`).Status)
	events, err := c.Finish(within(t, 30*time.Second), id)
	require.NoError(t, err)
	require.Equal(t, "run.completed", events[len(events)-1].Type)
	require.Len(t, in.all(), 1, "the waiting parent has no question of its own")
}

func read(t *testing.T, c *harness.Client, path string) string {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodGet, path, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s: %s", path, a.Body)
	return string(a.Body)
}

// hook is a listed webhook.
type hook struct{ WebhookID, URL, Status string }

// receivers lists the callback receivers of runs.
func receivers(t *testing.T, c *harness.Client) []hook {
	t.Helper()
	var list struct{ Webhooks []hook }
	require.NoError(t, json.Unmarshal([]byte(read(t, c, "/v1/webhooks")), &list))
	return list.Webhooks
}

// OpenWOP envelope contract §3.3: a model's question is sent to the callback URL, too.
func TestCallbacks_SendAModelsQuestion(t *testing.T) {
	t.Parallel()
	needsHost(t)
	in, url, env := receiver(t, http.StatusOK)
	h := harness.StartWith(t, harness.Options{Args: letThrough("--test-seams"), Env: env})
	c := h.Client(testKey)
	put(t, c, one("model", "core.ai.callPrompt", `{"provider":"mock","model":"mock-mini","envelopeType":"vendor.waybill.ticket.triage","prompt":"hi","expectsStreaming":false}`))
	question, err := json.Marshal(`{"type":"clarification.request","payload":{"questions":[{"id":"q1","question":"which?"}]}}`)
	require.NoError(t, err)
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/host/sample/test/mock-ai/program", `{"nodeId":"gate","program":[{"content":`+string(question)+`}]}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	id := calls(t, c, "model", url)
	asks := in.asks(t, id).asked(t)
	require.Equal(t, "clarification", asks.Interrupt.Kind)
	require.JSONEq(t, `{"questions":[{"id":"q1","question":"which?"}]}`, string(asks.Interrupt.Payload.Data))
	require.Equal(t, http.StatusOK, reply(t, h, asks.Interrupt.InterruptToken, `{"answers":{"q1":"blue"}}`).Status)
}

// OpenWOP host contract §6.5, last row: answering needs a user's own credential.
func TestCallbacks_SendNoTokenForGatesThatAcceptNone(t *testing.T) {
	t.Parallel()
	needsHost(t)
	in, url, env := receiver(t, http.StatusOK)
	h := harness.StartWith(t, harness.Options{Args: letThrough(), Env: env})
	c := h.Client(testKey)
	put(t, c, one("keyed", "core.approvalGate", `{"title":"t","actions":["accept"],"profile":"openwop-interrupt-auth-required"}`))
	id := calls(t, c, "keyed", url)
	m := in.asks(t, id)
	require.NotContains(t, string(m.body), "interruptToken")
	require.Equal(t, publicAddress+"/v1/runs/"+id+"/interrupts/gate", m.asked(t).ResolveURL)
}

// The receiver is down while runs ask questions, and the host is killed. When both are back, open questions
// are sent; answered and cancelled ones are not. A replay sends nothing.
func TestCallbacks_SurviveAKill(t *testing.T) {
	t.Parallel()
	needsHost(t)
	in, url, env := receiver(t, http.StatusServiceUnavailable)
	h := harness.StartWith(t, harness.Options{Args: letThrough(), Env: env})
	c := h.Client(testKey)
	put(t, c, one("approve", "core.approvalGate", questions[0].config))
	kept, answered, cancelled := calls(t, c, "approve", url), calls(t, c, "approve", url), calls(t, c, "approve", url)
	for _, id := range []string{kept, answered, cancelled} {
		in.asks(t, id)
	}
	h.Restart()
	c = h.Client(testKey)
	for path, body := range map[string]string{"/v1/runs/" + answered + "/interrupts/gate": `{"resumeValue":{"action":"accept"}}`, "/v1/runs/" + cancelled + "/cancel": `{}`} {
		a, err := c.Do(t.Context(), http.MethodPost, path, body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	}
	in.answer(http.StatusOK)
	taken := func() (out []mail) {
		return slices.DeleteFunc(in.all(), func(m mail) bool { return !m.taken })
	}
	require.Eventually(t, func() bool { return len(taken()) > 0 }, 3*time.Minute, 50*time.Millisecond, "the question is sent again")
	first, again := in.of(t, kept)[0], taken()[0]
	require.Equal(t, kept, again.asked(t).RunID)
	require.Equal(t, first.header.Get("Idempotency-Key"), again.header.Get("Idempotency-Key"))
	require.Equal(t, http.StatusOK, reply(t, h, again.asked(t).Interrupt.InterruptToken, `{"action":"accept"}`).Status)
	_, err := c.Finish(within(t, 30*time.Second), kept)
	require.NoError(t, err)

	fork := func(body string) string {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+kept+":fork", body)
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
		var v struct{ RunID string }
		require.NoError(t, a.JSON(&v))
		return v.RunID
	}
	replay := fork(`{"mode":"replay"}`)
	_, err = c.Finish(within(t, 30*time.Second), replay)
	require.NoError(t, err)
	branch := fork(`{"mode":"branch","fromSeq":4}`) // after the question, before its answer
	asks := in.asks(t, branch)
	require.Equal(t, branch+":"+asks.asked(t).Interrupt.InterruptID, asks.header.Get("Idempotency-Key"))
	require.Equal(t, http.StatusOK, reply(t, h, asks.asked(t).Interrupt.InterruptToken, `{"action":"accept"}`).Status)
	require.Empty(t, in.of(t, replay), "a replay calls no receiver")
	for _, id := range []string{answered, cancelled} {
		for _, m := range in.of(t, id) {
			require.False(t, m.taken, "answered questions are not sent")
		}
	}
}

// OpenWOP host contract §10.6: a URL that the operator no longer allows is not called, and this is
// reported.
func TestCallbacks_DropForbiddenURLs(t *testing.T) {
	t.Parallel()
	needsHost(t)
	in, url, _ := receiver(t, http.StatusOK)
	dir := t.TempDir()
	h := harness.StartIn(t, dir, letThrough()...) // it does not trust the receiver's certificate
	c := h.Client(testKey)
	put(t, c, one("approve", "core.approvalGate", questions[0].config))
	id := calls(t, c, "approve", url)
	require.Eventually(t, func() bool { return len(receivers(t, c)) == 1 }, 30*time.Second, 10*time.Millisecond)
	at := "/v1/webhooks/" + receivers(t, c)[0].WebhookID + "/deliveries?status="
	require.Eventually(t, func() bool { return strings.Contains(read(t, c, at+"pending"), "no trusted TLS connection") }, 30*time.Second, 20*time.Millisecond)
	h.Stop()

	h = harness.StartIn(t, dir, "--api-key", testKey+"=acme:*")
	c = h.Client(testKey)
	require.Eventually(t, func() bool { return strings.Contains(read(t, c, at+"failed"), id) }, time.Minute, 50*time.Millisecond)
	require.Contains(t, read(t, c, at+"failed"), "refused: the host has an address that is not public")
	require.Empty(t, in.all())
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs", fmt.Sprintf(`{"workflowId":"approve","callbackUrl":%q}`, url))
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, a.Status, "a new one is rejected as well")
	require.Contains(t, string(a.Body), "/callbackUrl")
}

// An approval that reaches another level is sent again, with a valid token; a replay of it sends
// nothing.
func TestCallbacks_SendQuestionsAgainAtEachLevel(t *testing.T) {
	t.Parallel()
	needsHost(t)
	in, url, env := receiver(t, http.StatusNoContent)
	h := harness.StartWith(t, harness.Options{Args: letThrough(), Env: env})
	c := h.Client(testKey)
	put(t, c, one("later", "core.approvalGate", `{"title":"Ship it?","actions":["accept"],"escalation":[{"afterSec":0.3}]}`))
	id := calls(t, c, "later", url)
	require.Eventually(t, func() bool { return len(in.of(t, id)) == 2 }, 30*time.Second, 10*time.Millisecond)
	first, again := in.of(t, id)[0], in.of(t, id)[1]
	require.Equal(t, "waybill.approval.escalated", again.asked(t).Type)
	require.Equal(t, "waybill.approval.escalated", again.header.Get("X-openwop-Event-Type"))
	require.Equal(t, first.header.Get("Idempotency-Key")+":1", again.header.Get("Idempotency-Key"))
	require.Equal(t, first.asked(t).Interrupt.Payload, again.asked(t).Interrupt.Payload)
	got := reply(t, h, again.asked(t).Interrupt.InterruptToken, `{"action":"accept"}`)
	require.Equal(t, http.StatusOK, got.Status, "%s", got.Body)
	_, err := c.Finish(within(t, 30*time.Second), id)
	require.NoError(t, err)
	a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs/"+id+":fork", `{"fromSeq":0,"mode":"replay"}`)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var fork struct{ RunID string }
	require.NoError(t, a.JSON(&fork))
	events, err := c.Finish(within(t, 30*time.Second), fork.RunID)
	require.NoError(t, err)
	require.Equal(t, "run.completed", events[len(events)-1].Type)
	require.Empty(t, in.of(t, fork.RunID))
	require.Len(t, in.of(t, id), 2)
}
