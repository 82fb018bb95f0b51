package rest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway"
)

func withSeams(c *gateway.Config) { c.TestSeams = true }

const sample = "/v1/host/sample/"

func TestSeams_AreAbsentByDefault(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, path := range []string{"test/reset", "envelope/accept", "node-catalog", "nothing", ""} {
		for _, method := range []string{"GET", "POST"} {
			refused(t, h.as(t, full, method, sample+path, ""), fault.NotFound)
		}
	}
}

func TestSeams_NeedACredential(t *testing.T) {
	t.Parallel()
	h := newHost(t, withSeams)
	refused(t, h.as(t, "", "POST", sample+"test/reset", ""), fault.Unauthenticated)
	refused(t, h.as(t, "Bearer unknown", "GET", sample+"node-catalog", ""), fault.Unauthenticated)
}

func TestSeams_AnswerInTheirOwnFormat(t *testing.T) {
	t.Parallel()
	h := newHost(t, withSeams)
	const program = `{"nodeId":"n","program":[{"stopReason":"end_turn","content":"c"},{}]}`
	cases := []struct {
		name, method, path, body string
		status                   int
		want                     string
	}{
		{"accept", "POST", "envelope/accept", `{"a":1}`, 200, `{"tenant":"acme","body":7}`},
		{"catalog", "GET", "node-catalog", "", 200, `{"nodes":[{"typeId":"core.noop","source":"builtin"}]}`},
		{"program", "POST", "test/mock-ai/program", program, 200, `{"ok":true,"count":2}`},
		{"reset mock", "POST", "test/mock-ai/reset", "", 200, `{"ok":true,"cleared":2}`},
		{"reset", "POST", "test/reset", "", 200, `{"ok":true}`},
		{"budget", "GET", "test/mock-ai/last-dispatch-budget?nodeId=n", "", 200, `{"maxTokens":64}`},
		{"no budget", "GET", "test/mock-ai/last-dispatch-budget?nodeId=none", "", 200, `{"maxTokens":null}`},
		{
			"events", "GET", "test/runs/run_1/events", "", 200,
			`{"events":[{"sequence":0,"type":"run.started"},{"sequence":1,"type":"run.completed","nodeId":"n"}]}`,
		},
		{
			"events by type", "GET", "test/runs/run_1/events?type=run.started", "", 200,
			`{"events":[{"sequence":0,"type":"run.started"}]}`,
		},
		{
			"events by node", "GET", "test/runs/run_1/events?nodeId=n", "", 200,
			`{"events":[{"sequence":1,"type":"run.completed","nodeId":"n"}]}`,
		},
		{"events by cause", "GET", "test/runs/run_1/events?causationId=x", "", 200, `{"events":[]}`},
		{"events of nothing", "GET", "test/runs/absent/events", "", 200, `{"events":[]}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := h.as(t, full, c.method, sample+c.path, c.body)
			require.Equal(t, c.status, w.Code, "%s", w.Body)
			require.Equal(t, "application/json", w.Header().Get("Content-Type"))
			require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
			require.JSONEq(t, c.want, w.Body.String())
		})
	}
}

func TestSeams_RejectInTheirOwnFormat(t *testing.T) {
	t.Parallel()
	h := newHost(t, withSeams)
	cases := []struct {
		name, method, path, body string
		want                     fault.Code
	}{
		{"unknown", "GET", "nothing", "", fault.NotFound},
		{"deeper path", "GET", "test/runs/a/b/events", "", fault.NotFound},
		{"wrong method", "GET", "test/reset", "", fault.MethodNotAllowed},
		{"wrong method for events", "POST", "test/runs/run_1/events", "", fault.MethodNotAllowed},
		{"no node", "GET", "test/mock-ai/last-dispatch-budget", "", fault.InvalidArgument},
		{"no JSON", "POST", "test/mock-ai/program", "{", fault.InvalidArgument},
		{"no program", "POST", "test/mock-ai/program", `{"nodeId":"n"}`, fault.InvalidArgument},
		{"no id", "POST", "test/mock-ai/program", `{"program":[]}`, fault.InvalidArgument},
		{"unknown member", "POST", "test/mock-ai/program", `{"nodeId":"n","program":[],"x":1}`, fault.InvalidArgument},
		{
			"unknown stop", "POST", "test/mock-ai/program",
			`{"nodeId":"n","program":[{"stopReason":"bored"}]}`, fault.InvalidArgument,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := h.as(t, full, c.method, sample+c.path, c.body)
			require.Equal(t, fault.Lookup(c.want).HTTP, w.Code, "%s", w.Body)
			e, ok := decode(t, w)["error"].(map[string]any)
			require.True(t, ok, "%s", w.Body)
			require.Equal(t, string(c.want), e["code"])
			require.NotEmpty(t, e["message"])
			require.Equal(t, c.want == fault.MethodNotAllowed, w.Header().Get("Allow") != "", "Allow names the methods of a 405 (RFC 9110 §15.5.6)")
		})
	}
}

func TestSeams_AreLimitedLikeOtherRoutes(t *testing.T) {
	t.Parallel()
	h := newHost(t, withSeams)
	w := h.as(t, full, "POST", sample+"envelope/accept", strings.Repeat("x", 9<<20+1))
	require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
}
