package rest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
)

func seconds(ms float64) string { return strconv.Itoa(int(math.Ceil(ms / 1000))) }

func decode(t testing.TB, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &v), "%s", w.Body)
	return v
}

func TestCreate_AnswersWithTheRunsAddresses(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	w := h.as(t, full, "POST", "/v1/runs", `{"workflowId":"wf","inputs":{"n":12345678901234567890},"tags":["a"]}`)
	require.Equal(t, http.StatusCreated, w.Code, "%s", w.Body)
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	body := decode(t, w)
	id, _ := body["runId"].(string)
	require.Equal(t, map[string]any{
		"runId":      id,
		"workflowId": "wf",
		"status":     "pending",
		"eventsUrl":  "http://host/v1/runs/" + id + "/events",
		"statusUrl":  "http://host/v1/runs/" + id,
	}, body)
	start := h.dispatcher.lastStart()
	require.Equal(t, "rest", start.GetTransport())
	require.Equal(t, "acme", start.GetTenant())
	require.Equal(t, `{"n":12345678901234567890}`, string(start.GetInputs()), "numbers arrive as they were sent")
	require.Empty(t, header(w, replayHeader))
}

func TestCreate_ReplaysUnderTheSameKey(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	first := h.as(t, full, "POST", "/v1/runs", `{"workflowId":"wf","inputs":{"a":1,"b":2}}`, "Idempotency-Key", "k1")
	again := h.as(t, full, "POST", "/v1/runs", `{ "inputs":{"b":2,"a":1.0}, "workflowId":"wf" }`, "Idempotency-Key", "k1")
	require.Equal(t, http.StatusCreated, first.Code)
	require.Equal(t, http.StatusCreated, again.Code, "a replay has the original status")
	require.JSONEq(t, first.Body.String(), again.Body.String())
	require.Empty(t, header(first, replayHeader))
	require.Equal(t, "true", header(again, replayHeader))

	w := h.as(t, full, "POST", "/v1/runs", `{"workflowId":"wf"}`, "Idempotency-Key", "k1")
	refused(t, w, fault.IdempotencyKeyMismatch)
	require.NotContains(t, w.Body.String(), decode(t, first)["runId"])
	other := h.as(t, beta, "POST", "/v1/runs", `{"workflowId":"wf"}`, "Idempotency-Key", "k1")
	require.Equal(t, http.StatusCreated, other.Code, "another tenant's key is another key")
	refused(t, h.as(t, full, "POST", "/v1/runs", `{"workflowId":"wf"}`, "Idempotency-Key", strings.Repeat("k", 256)), fault.ValidationError)
}

func TestCreate_CarriesHeadersToTheService(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	w := h.as(t, tester, "POST", "/v1/runs", `{"workflowId":"wf"}`, "X-Dedup", "enforce", "X-Force-Engine-Version", "1", "Traceparent", trace, "Grpc-Metadata-waybill-transport", "forged")
	require.Equal(t, http.StatusCreated, w.Code, "%s", w.Body)
	start := h.dispatcher.lastStart()
	require.True(t, start.GetDedup())
	require.True(t, start.GetTestKey())
	require.Equal(t, trace, start.GetTraceparent())
	require.Equal(t, "rest", start.GetTransport(), "not for the caller to say")
	refused(t, h.as(t, full, "POST", "/v1/runs", `{"workflowId":"wf"}`, "X-Force-Engine-Version", "1"), fault.ForceEngineForbidden)
	refused(t, h.as(t, tester, "POST", "/v1/runs", `{"workflowId":"wf"}`, "X-Force-Engine-Version", "9"), fault.UnsupportedForceEngine)
}

func TestTraceparent_IsReturnedIfValid(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, path := range []string{"/v1/runs/run_1", "/v1/runs/absent", "/.well-known/openwop", "/nowhere"} {
		require.Equal(t, good, h.as(t, full, "GET", path, "", "Traceparent", good).Header().Get("Traceparent"), path)
	}
	bad := []string{
		"x",
		good + "0",
		good[1:],
		strings.ToUpper(good),
		"ff" + good[2:],
		"00-" + strings.Repeat("0", 32) + good[35:],
		good[:36] + strings.Repeat("0", 16) + good[52:],
		strings.ReplaceAll(good, "-", "_"), strings.Replace(good, "a", "g", 1),
	}
	for _, tp := range bad {
		w := h.as(t, full, "POST", "/v1/runs", `{"workflowId":"wf"}`, "Traceparent", tp)
		require.Equal(t, http.StatusCreated, w.Code, "ignored, not refused: %q", tp)
		require.Empty(t, w.Header().Get("Traceparent"), "%q", tp)
		require.Empty(t, h.dispatcher.lastStart().GetTraceparent(), "%q", tp)
	}
}

func TestGetRun_IsConditional(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	w := h.as(t, full, "GET", "/v1/runs/run_1", "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, snapshot, w.Body.String(), "byte for byte")
	tag := tagOf(w)
	require.Equal(t, `"run_1.1"`, tag)
	require.Equal(t, "private, no-cache", w.Header().Get("Cache-Control"))
	for _, none := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
		w := h.as(t, full, "GET", "/v1/runs/run_1", "", "If-None-Match", none)
		require.Equal(t, http.StatusNotModified, w.Code, none)
		require.Empty(t, w.Body.String())
		require.Equal(t, tag, tagOf(w))
	}
	for _, none := range []string{`"run_1.0"`, "run_1.1", `"run_1.10"`} {
		require.Equal(t, http.StatusOK, h.as(t, full, "GET", "/v1/runs/run_1", "", "If-None-Match", none).Code, none)
	}
	refused(t, h.as(t, full, "GET", "/v1/runs/absent", "", "If-None-Match", "*"), fault.RunNotFound)
}

func tagOf(w *httptest.ResponseRecorder) string { return header(w, "etag") }

func TestDiscovery_IsPublicAndConditional(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	w := h.do(t, "GET", "/.well-known/openwop", "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "public, max-age=300", w.Header().Get("Cache-Control"))
	require.NotEmpty(t, w.Header().Get("Capabilities-Etag"))
	require.Equal(t, "1.1", decode(t, w)["protocolVersion"])
	again := h.do(t, "GET", "/.well-known/openwop", "", "Authorization", "Bearer unknown")
	require.Equal(t, w.Body.String(), again.Body.String(), "credentials change nothing")
	require.Equal(t, w.Header().Get("Capabilities-Etag"), again.Header().Get("Capabilities-Etag"))
	match := h.do(t, "GET", "/.well-known/openwop", "", "If-None-Match", tagOf(w))
	require.Equal(t, http.StatusNotModified, match.Code)
	require.Empty(t, match.Body.String())
}

func TestSchema_HasItsOwnMediaType(t *testing.T) {
	t.Parallel()
	w := newHost(t).do(t, "GET", "/schemas/envelopes/error.schema.json", "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "application/schema+json", w.Header().Get("Content-Type"))
	require.Equal(t, "public, max-age=300", w.Header().Get("Cache-Control"))
	require.Equal(t, `{"type": "object"}`, w.Body.String())
}

func TestBody_MustBeStrictJSON(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, body := range []string{
		"", " ", "{", "[]", "null", `"x"`, "1", `{"workflowId":"wf"}x`,
		`{"workflowId":"wf","workflowId":"wg"}`, `{"workflowId":"wf",}`, "\xef\xbb\xbf{}", "{'a':1}",
		strings.Repeat("[", 3000),
	} {
		refused(t, h.as(t, full, "POST", "/v1/runs", body), fault.ValidationError)
	}
	cases := map[string]string{
		`{"workflowId":"wf","bogus":1}`:       "/bogus",
		`{"workflow_id":"wf"}`:                "/workflow_id",
		`{"workflowId":1}`:                    "/workflowId",
		`{"workflowId":null}`:                 "/workflowId",
		`{"workflowId":"wf","tags":"a"}`:      "/tags",
		`{"workflowId":"wf","tags":["a",1]}`:  "/tags/1",
		`{"workflowId":"wf","inputs":[]}`:     "/inputs",
		`{"workflowId":"wf","a/b~c":1}`:       "/a~1b~0c",
		`{"workflowId":"wf","inputs":{"a":}}`: "",
	}
	for body, path := range cases {
		e := refused(t, h.as(t, full, "POST", "/v1/runs", body), fault.ValidationError)
		list, ok := e.Details["problems"].([]any)
		require.True(t, ok, body)
		if path != "" {
			require.Equal(t, path, list[0].(map[string]any)["path"], body)
		}
	}
}

func TestBody_NeedsTheJSONContentType(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	const body = `{"workflowId":"wf"}`
	for _, ct := range []string{
		"", "text/plain", "application/x-www-form-urlencoded", "application/jsonx",
		"application/json; charset", "json",
	} {
		refused(t, h.do(t, "POST", "/v1/runs", body, "Authorization", full, "Content-Type", ct), fault.ValidationError)
	}
	for _, ct := range []string{"application/json", "Application/JSON", "application/json; charset=utf-8"} {
		require.Equal(t, http.StatusCreated, h.do(t, "POST", "/v1/runs", body, "Authorization", full, "Content-Type", ct).Code, ct)
	}
}

func TestBody_IsLimitedAlsoWithoutALength(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	fits := `{"workflowId":"wf","inputs":{"x":"` + strings.Repeat("y", maxBody-37) + `"}}`
	require.Len(t, fits, maxBody)
	require.Equal(t, http.StatusCreated, h.as(t, full, "POST", "/v1/runs", fits).Code)
	for _, length := range []int64{maxBody + 1, -1} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/runs", strings.NewReader(fits+" "))
		r.ContentLength = length
		r.Header.Set("Authorization", full)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.EqualValues(t, maxBody, refused(t, w, fault.PayloadTooLarge).Details["limitBytes"])
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("connection reset by 10.0.0.1") }

func TestBody_ATruncatedOneIsRejectedWithoutTheReason(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/runs", broken{})
	r.Header.Set("Authorization", full)
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	newHost(t).ServeHTTP(w, r)
	require.NotContains(t, refused(t, w, fault.ValidationError).Message, "10.0.0.1")
}

func TestCancel_TakesAnEmptyBody(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, body := range []string{"", "{}", `{"reason":"r"}`} {
		w := h.as(t, full, "POST", "/v1/runs/run_1/cancel", body)
		require.Equal(t, http.StatusOK, w.Code, "%s", w.Body)
		require.JSONEq(t, `{"runId":"run_1","status":"cancelling"}`, w.Body.String())
	}
	refused(t, h.as(t, full, "POST", "/v1/runs/run_1/cancel", `{"runId":"run_2"}`), fault.ValidationError)
	refused(t, h.as(t, full, "POST", "/v1/runs/run_1/cancel", `{"reason":`), fault.ValidationError)
}

func TestCancel_ReplaysUnderTheSameKey(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for i := range 3 {
		w := h.as(t, full, "POST", "/v1/runs/run_1/cancel", "", "Idempotency-Key", "k")
		require.Equal(t, http.StatusOK, w.Code)
		require.Equal(t, i > 0, header(w, replayHeader) == "true")
	}
	require.Equal(t, 1, h.dispatcher.cancels)
	for range 2 {
		refused(t, h.as(t, full, "POST", "/v1/runs/absent/cancel", "", "Idempotency-Key", "k2"), fault.RunNotFound)
	}
	require.Equal(t, 2, h.dispatcher.cancels, "a final failure is not tried again")
}

func TestBulkCancel_AnswersPerEntry(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	w := h.as(t, full, "POST", "/v1/runs:bulk-cancel", `{"runIds":["absent","run_1"]}`)
	require.Equal(t, http.StatusOK, w.Code)
	require.JSONEq(t, `{"results":[
		{"runId":"absent","ok":false,"error":{"code":"not_found","error":"not_found","message":"no run of this id in your tenant"}},
		{"runId":"run_1","ok":true,"status":"cancelling"}]}`, w.Body.String())
	for _, body := range []string{
		"", "{}", `{"runIds":[]}`, `{"runIds":"run_1"}`, `{"runIds":[1]}`, `{"runIds":["a"],"x":1}`,
		`{"runIds":[""]}`,
	} {
		refused(t, h.as(t, full, "POST", "/v1/runs:bulk-cancel", body), fault.ValidationError)
	}
}

func TestPoll_WritesZeroValues(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	w := h.as(t, full, "GET", "/v1/runs/run_1/events/poll?lastSequence=-1", "")
	require.Equal(t, http.StatusOK, w.Code, "%s", w.Body)
	require.Equal(t, `{"runId":"run_1","events":[{"sequence":0,"type":"run.started"},{"sequence":1,"type":"run.completed","nodeId":"n"}],`+
		`"isComplete":true,"isTerminal":true,"lastEventSeq":1,"runStatus":"completed"}`, w.Body.String())
	w = h.as(t, full, "GET", "/v1/runs/run_1/events/poll?lastSequence=99", "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), `"events":[]`)
	require.JSONEq(t, `{"runs":[]}`, h.as(t, full, "GET", "/v1/runs", "").Body.String())
}

func TestView_IsThatOfTheCallersRunAsOfAnEvent(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	w := h.as(t, reader, "GET", "/v1/runs/run_1:view", "")
	require.Equal(t, http.StatusOK, w.Code, "%s", w.Body)
	require.Equal(t, `{"runId":"run_1","sequence":1}`, w.Body.String())
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Equal(t, `{"runId":"run_1","sequence":0}`, h.as(t, reader, "GET", "/v1/runs/run_1:view?at=0", "").Body.String())
	refused(t, h.as(t, beta, "GET", "/v1/runs/run_1:view", ""), fault.RunNotFound)
	refused(t, h.as(t, full, "GET", "/v1/runs/absent:view?at=0", ""), fault.RunNotFound)
	refused(t, h.do(t, "GET", "/v1/runs/run_1:view", ""), fault.Unauthenticated)
}

func TestQuery_OfTheWrongTypeIsNamed(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for target, name := range map[string]string{
		"/v1/runs/run_1/events/poll?lastSequence=x":            "lastSequence",
		"/v1/runs/run_1/events/poll?lastSequence=1.5":          "lastSequence",
		"/v1/runs/run_1/events/poll?timeout=99999999999999999": "timeout",
		"/v1/runs/run_1/events/poll?timeout=":                  "timeout",
		"/v1/runs/run_1/events/poll?limit=ten":                 "limit",
		"/v1/runs/run_1:view?at=-1":                            "at",
		"/v1/runs/run_1:view?at=now":                           "at",
		"/v1/runs?limit=0":                                     "limit",
		"/v1/workflows?limit=201":                              "limit",
		"/v1/runs?status=nope":                                 "status",
	} {
		require.Contains(t, refused(t, h.as(t, full, "GET", target, ""), fault.ValidationError).Message, name, target)
	}
}

func TestWorkflows_AreRegisteredListedAndRead(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	w := h.as(t, full, "POST", "/v1/workflows", `{"workflowId":"wf"}`)
	require.Equal(t, http.StatusCreated, w.Code)
	require.JSONEq(t, `{"workflowId":"wf","version":"1","digest":"d","created":true,"warnings":[]}`, w.Body.String())
	w = h.as(t, full, "POST", "/v1/workflows", `{"workflowId":"same"}`)
	require.Equal(t, http.StatusOK, w.Code, "nothing was created")
	require.Contains(t, w.Body.String(), `"created":false`)
	require.Equal(t, `{"workflowId": "wf"}`, h.as(t, full, "GET", "/v1/workflows/wf", "").Body.String())
	require.Equal(t, http.StatusOK, h.as(t, full, "GET", "/v1/workflows", "").Code)
	refused(t, h.as(t, reader, "POST", "/v1/workflows", `{}`), fault.Forbidden)
	refused(t, h.as(t, reader, "GET", "/v1/workflows/wf", ""), fault.Forbidden)
	refused(t, h.as(t, full, "POST", "/v1/workflows", `{"a":1,"a":2}`), fault.ValidationError)
}

func TestErrors_RevealNoInternals(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for _, wf := range []string{"panics", "breaks"} {
		w := h.as(t, full, "POST", "/v1/runs", `{"workflowId":"`+wf+`"}`)
		e := refused(t, w, fault.InternalError)
		require.NotEmpty(t, e.Details["correlationId"])
		for _, secret := range []string{"secret", "EOF", "panic", ".go"} {
			require.NotContains(t, w.Body.String(), secret)
		}
	}
	w := h.as(t, full, "POST", "/v1/runs", `{"workflowId":"active"}`)
	e := refused(t, w, fault.RunAlreadyActive)
	require.Equal(t, "2", w.Header().Get("Retry-After"), "rounded up to whole seconds")
	require.EqualValues(t, 2, e.Details["retryAfter"])
	require.Equal(t, "cloud", e.Details["activeHost"])
	const key = "Bearer hk_live_do_not_echo"
	require.NotContains(t, h.as(t, key, "GET", "/v1/runs", "").Body.String(), "do_not_echo")
	forbidden := refused(t, h.as(t, reader, "POST", "/v1/runs", "{}"), fault.Forbidden)
	require.Equal(t, "runs:create", forbidden.Details["scopeRequired"])
}

func TestHealth_ReportsLivenessAndReadiness(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	require.Equal(t, http.StatusOK, h.do(t, "GET", "/healthz", "").Code)
	require.Equal(t, http.StatusOK, h.do(t, "GET", "/readyz", "").Code)
	h.ready = errors.New("the log is behind")
	require.Equal(t, http.StatusOK, h.do(t, "GET", "/healthz", "").Code)
	w := h.do(t, "GET", "/readyz", "")
	refused(t, w, fault.ServiceUnavailable)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
}

func TestEvents_GoThroughTheHandler(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	w := h.as(t, full, "GET", "/v1/runs/run_1/events", "")
	require.Equal(t, "text/event-stream", w.Header().Get("Content-Type"))
	require.Equal(t, "id: 0\nevent: run.started\ndata: {\"sequence\":0,\"type\":\"run.started\"}\n\nid: 1\nevent: run.completed\ndata: {\"sequence\":1,\"type\":\"run.completed\",\"nodeId\":\"n\"}\n\n", w.Body.String())
	w = h.as(t, full, "GET", "/v1/runs/run_1/events", "", "Accept", "application/json")
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.Len(t, decode(t, w)["events"], 2)
	for _, accept := range []string{"", "*/*", "application/json"} {
		refused(t, h.as(t, full, "GET", "/v1/runs/run_1/events?streamMode=bogus", "", "Accept", accept), fault.UnsupportedStreamMode)
		refused(t, h.as(t, full, "GET", "/v1/runs/run_1/events?bufferMs=5001", "", "Accept", accept), fault.ValidationError)
	}
	refused(t, h.as(t, full, "GET", "/v1/runs/run_1/events", "", "Last-Event-ID", "-1"), fault.ValidationError)
}

func FuzzHandler_NeverAnswersAnythingButJSON(f *testing.F) {
	h := newHost(f)
	f.Add("POST", "v1/runs", `{"workflowId":"wf"}`)
	f.Add("GET", "v1/runs/run_1/events/poll", "")
	f.Add("GET", "v1/runs/%2e%2e", "")
	f.Add("POST", "v1/workflows", `{"a":[{}]}`)
	f.Fuzz(func(t *testing.T, method, path, body string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "/"+path, bytes.NewReader([]byte(body)))
		if err != nil || strings.HasPrefix(r.URL.Path, "/v1/packs") || strings.HasSuffix(r.URL.Path, "/events") {
			return
		}
		r.Header.Set("Authorization", full)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.True(t, json.Valid(w.Body.Bytes()), "%d %q", w.Code, w.Body)
		if w.Code >= 400 {
			var e envelope
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &e))
			require.NotEmpty(t, e.Error)
		}
	})
}

func BenchmarkCreate(b *testing.B) {
	h := newHost(b)
	b.ReportAllocs()
	for b.Loop() {
		if w := h.as(b, full, "POST", "/v1/runs", `{"workflowId":"wf","inputs":{"mail":"hello"},"tags":["a"]}`); w.Code != http.StatusCreated {
			b.Fatal(w.Body)
		}
	}
}

func BenchmarkGetRun(b *testing.B) {
	h := newHost(b)
	b.ReportAllocs()
	for b.Loop() {
		if w := h.as(b, full, "GET", "/v1/runs/run_1", ""); w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
}
