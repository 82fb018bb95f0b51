package conformance

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// The keys of the host that these tests reset and restart.
const (
	hereKey  = "hk_test_6c1d9e7a20b5f384" // acme
	thereKey = "hk_test_a97b3f50d8e1c624" // beta
)

func controlled(t *testing.T) (h *harness.Host, here, there *harness.Client) {
	t.Helper()
	c := client(t, testKey) // skips under -short
	h = harness.Start(t, "--test-seams", "--api-key", hereKey+"=acme:*", "--api-key", thereKey+"=beta:*")
	return h, c.To(h, hereKey), c.To(h, thereKey)
}

// leave creates state of a tenant in every seam.
func leave(t *testing.T, c *harness.Client) {
	t.Helper()
	require.Equal(t, "breached", acceptBy(t, c, obj{
		"envelope": seamEnvelope(t, "error", plainError), "persistedDedup": obj{"runId": "kept"}, "counters": obj{"envelopesPerTurn": obj{"current": 1, "cap": 1}},
		"projectTo": obj{"runId": "shown"},
	}).Status)
	require.Equal(t, "mine", acceptBy(t, c, obj{"envelope": seamEnvelope(t, "error", plainError, "correlationId", "own", "envelopeId", "mine")}).EnvelopeID)
	program(t, c, "scripted", "one", "two")
	do(t, c, http.MethodPost, seams+"test/capability-toggle", `{"name":"some.capability","value":false}`)
}

// left returns the remaining part of that state.
func left(t *testing.T, c *harness.Client) obj {
	t.Helper()
	var overlay struct{ Overlay map[string]bool }
	askSeam(t, c, http.MethodPost, "test/capability-toggle", `{"name":"unset","value":null}`, &overlay)
	return obj{
		"persisted": acceptBy(t, c, obj{"envelope": seamEnvelope(t, "error", plainError), "persistedDedup": obj{"runId": "kept"}}).Status == "breached",
		"memory":    acceptBy(t, c, obj{"envelope": seamEnvelope(t, "error", plainError, "correlationId", "own", "envelopeId", "another")}).EnvelopeID == "mine",
		"events":    len(seamEvents(t, c, "shown", "")) > 0, "spans": len(seamSpans(t, c, "shown")) > 0, "overlay": len(overlay.Overlay) > 0,
	}
}

// scripts returns the number of scripted node ids, and removes the scripts.
func scripts(t *testing.T, c *harness.Client) int {
	t.Helper()
	var got struct {
		OK      bool
		Cleared *int
	}
	askSeam(t, c, http.MethodPost, "test/mock-ai/reset", `{}`, &got)
	require.True(t, got.OK)
	require.NotNil(t, got.Cleared)
	return *got.Cleared
}

func all(there bool) obj {
	return obj{"persisted": there, "memory": there, "events": there, "spans": there, "overlay": there}
}

// OpenWOP envelope contract §23, §23.3.
func TestReset_DeletesTheStateOfTheCallersTenant(t *testing.T) {
	t.Parallel()
	_, here, there := controlled(t)
	for _, c := range []*harness.Client{here, there} {
		leave(t, c)
		require.Equal(t, all(true), left(t, c))
	}
	a := do(t, here, http.MethodPost, seams+"test/reset", `{}`)
	require.JSONEq(t, `{"ok":true}`, string(a.Body))
	require.Equal(t, all(false), left(t, here))
	require.Zero(t, scripts(t, here))
	require.Equal(t, all(true), left(t, there), "another tenant's state is as it was")
	require.Equal(t, 1, scripts(t, there))
	require.Zero(t, scripts(t, there))
}

// OpenWOP envelope contract §23.1, persistedDedup: survives restarts.
func TestSeamState_SurvivesRestarts(t *testing.T) {
	t.Parallel()
	h, here, _ := controlled(t)
	leave(t, here)
	spans := seamSpans(t, here, "shown")
	h.Restart() // killed, not stopped
	here = here.To(h, hereKey)
	require.Equal(t, all(true), left(t, here))
	require.Equal(t, spans, seamSpans(t, here, "shown"))
	require.Zero(t, scripts(t, here), "scripts are never on a disk")
}

func TestObserve_SpansOfAllTestLogs(t *testing.T) {
	t.Parallel()
	_, here, there := controlled(t)
	for i := range 3 {
		acceptBy(t, here, obj{"envelope": seamEnvelope(t, "error", plainError, "correlationId", fmt.Sprint("c-", i), "envelopeId", fmt.Sprint("e-", i)), "projectTo": obj{"runId": fmt.Sprint("r-", i)}})
	}
	for name, tc := range map[string]struct {
		query string
		want  int
	}{
		"§23.2 no filter": {"", 3}, "§23.2 envelopeId alone": {"?envelopeId=e-1", 1}, "§23.2 name alone": {"?name=openwop.envelope.accept", 3},
		"§23.2 runId and envelopeId": {"?runId=r-1&envelopeId=e-1", 1}, "§23.2 of another run": {"?runId=r-2&envelopeId=e-1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got struct{ Spans []testSpan }
			askSeam(t, here, http.MethodGet, "test/otel/spans"+tc.query, "", &got)
			require.Len(t, got.Spans, tc.want)
			askSeam(t, there, http.MethodGet, "test/otel/spans"+tc.query, "", &got)
			require.Empty(t, got.Spans)
		})
	}
}

func TestMock_EveryMemberOfAProgram(t *testing.T) {
	t.Parallel()
	_, here, there := controlled(t)
	doc := definition("mocked", node("mocked-node", "core.ai.structuredOutput",
		`{"provider":"mock","model":"any-model","outputSchema":{"type":"object","required":["ok"],"properties":{"ok":{"type":"boolean"}}}}`,
		`{"messages":{"type":"static","value":[{"role":"user","content":"go"}]}}`), "", "", "")
	for _, c := range []*harness.Client{here, there} {
		require.Equal(t, http.StatusCreated, do(t, c, http.MethodPost, "/v1/workflows", doc).Status)
	}
	set := func(c *harness.Client, entries string) {
		var got struct {
			OK    bool
			Count int
		}
		askSeam(t, c, http.MethodPost, "test/mock-ai/program", `{"nodeId":"mocked-node","program":[`+entries+`]}`, &got)
		require.True(t, got.OK)
	}
	payloads := func(c *harness.Client, typ string) []string {
		var out []string
		_, events := run(t, c, `{"workflowId":"mocked","configurable":{"maxTokens":10}}`)
		for _, e := range events {
			if e.Type == typ {
				out = append(out, string(e.Payload))
			}
		}
		return out
	}
	set(here, `{"content":"{\"ok\":true}"}`)
	usage := payloads(here, "provider.usage")
	require.Len(t, usage, 1)
	requireWithin(t, `{"inputTokens":100,"outputTokens":50,"provider":"mock","model":"any-model"}`, []byte(usage[0]))

	set(here, `{"content":"{\"ok\":true}","inputTokens":3,"outputTokens":4}`)
	requireWithin(t, `{"inputTokens":3,"outputTokens":4}`, []byte(payloads(here, "provider.usage")[0]))

	for _, stop := range []string{"max_tokens", "length"} {
		set(here, `{"stopReason":"`+stop+`","content":"{"},{"content":"{\"ok\":true}"}`)
		require.Len(t, payloads(here, "envelope.truncated"), 1, stop)
	}
	for _, entry := range []string{`{"stopReason":"safety"}`, `{"refusalText":"no"}`} {
		set(here, entry)
		require.Len(t, payloads(here, "envelope.refusal"), 1, entry)
	}
	set(here, `{"content":"old"}`)
	set(here, `{"stopReason":"end_turn","content":"{\"ok\":true}"},{"stopReason":"stop_sequence","content":"{\"ok\":false}"}`)
	require.Contains(t, payloads(here, "node.completed")[0], `"ok":true`, "the queue was replaced")
	require.Len(t, payloads(here, "node.completed"), 1, "keyed by node id across runs, first in first out")
	require.Empty(t, payloads(here, "node.completed"), "an exhausted queue returns an empty answer")

	set(here, `{"content":"{\"ok\":true}"}`)
	require.Empty(t, payloads(there, "node.completed"), "another tenant's node of that id has no script")
	require.Len(t, payloads(here, "node.completed"), 1)

	var budget struct{ MaxTokens *int }
	askSeam(t, here, http.MethodGet, "test/mock-ai/last-dispatch-budget?nodeId=mocked-node", "", &budget)
	require.Equal(t, 10, *budget.MaxTokens)
}

func TestMock_RejectsImpossibleEntries(t *testing.T) {
	t.Parallel()
	c := client(t, otherKey)
	for name, entry := range map[string]string{
		"§23.3 an invalid stop reason": `{"stopReason":"bored"}`, "§23.3 tokens below 0": `{"outputTokens":-1}`, "§23.3 input below 0": `{"inputTokens":-1}`,
		"§23.3 half a token": `{"outputTokens":0.5}`, "§23.3 content that is no text": `{"content":{}}`, "§23.3 a member that is none": `{"temperature":1}`, "§23.3 no object": `7`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := do(t, c, http.MethodPost, seams+"test/mock-ai/program", `{"nodeId":"never","program":[`+entry+`]}`)
			require.Equal(t, http.StatusBadRequest, a.Status, "%s", a.Body)
			require.Contains(t, string(a.Body), "invalid_argument")
		})
	}
}

// OpenWOP envelope contract §23.5: the token is the credential until it expires.
func TestAsset_IsServedUntilItExpires(t *testing.T) {
	t.Parallel()
	h, here, _ := controlled(t)
	url := func(body string) string {
		var got struct{ URL string }
		a := do(t, here, http.MethodPost, seams+"media/put", body)
		require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
		require.NoError(t, a.JSON(&got))
		return h.HTTP + got.URL
	}
	brief, lasting := url(`{"contentBase64":"aGk=","ttlSeconds":1}`), url(`{"contentBase64":"aGk="}`)
	require.NotEqual(t, brief, lasting, "not guessable from one another")
	require.Eventually(t, func() bool {
		res, _ := fetch(t, http.MethodGet, brief)
		return res.StatusCode == http.StatusNotFound
	}, time.Minute, 50*time.Millisecond)
	res, body := fetch(t, http.MethodGet, lasting)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, "hi", string(body))
	for name, bad := range map[string]string{"§23.5 empty": `{"contentBase64":""}`, "§23.5 none": `{}`, "§23.5 no base64": `{"contentBase64":"%"}`} {
		require.Equal(t, http.StatusBadRequest, do(t, here, http.MethodPost, seams+"media/put", bad).Status, name)
	}
}
