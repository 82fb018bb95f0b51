package sweep

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
)

// Webhook deliveries, and the answers of their receivers.

// hookTag tags the runs that a webhook reports.
const hookTag = "sweep-hook"

// hookEvents lists the event types that the webhook sends. All of them carry content.
var hookEvents = []string{
	"run.started", "run.completed", "run.failed", "run.cancelled", "run.paused", "run.resumed", "node.completed", "node.failed", "node.resumed",
	"interrupt.requested", "interrupt.resolved", "approval.requested", "approval.received", "clarification.requested", "clarification.resolved",
	"channel.written", "variable.changed",
}

// inbox is a server that accepts or rejects webhook deliveries.
type inbox struct {
	*httptest.Server
	sinks *sinks

	mu     sync.Mutex // guards the fields below
	status int
	says   string
	bodies map[string]*bytes.Buffer // by run
	ended  map[string]bool          // runs whose last event has arrived
	n      int
}

func (r *rig) openInbox() *inbox {
	in := &inbox{sinks: r.sinks, status: http.StatusNoContent, bodies: map[string]*bytes.Buffer{}, ended: map[string]bool{}}
	in.Server = httptest.NewServer(in)
	r.t.Cleanup(in.Close)
	return in
}

func (in *inbox) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	in.sinks.add("webhook", body)
	in.sinks.add("webhook headers", []byte(q.RequestURI))
	for name, values := range q.Header {
		in.sinks.add("webhook headers", []byte(name+": "+strings.Join(values, ",")))
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	_, rest, _ := bytes.Cut(body, []byte(`"runId":"`))
	runID, _, _ := bytes.Cut(rest, []byte(`"`))
	if in.bodies[string(runID)] == nil {
		in.bodies[string(runID)] = &bytes.Buffer{}
	}
	in.bodies[string(runID)].Write(body)
	switch q.Header.Get("X-Openwop-Event-Type") {
	case "run.completed", "run.failed", "run.cancelled":
		in.ended[string(runID)] = true
	}
	in.n++
	if in.says != "" {
		w.Header().Set("Retry-After", oneLine(in.says))
		w.Header().Set("Location", oneLine(in.says))
	}
	w.WriteHeader(in.status)
	_, _ = io.WriteString(w, in.says)
}

// taken returns all deliveries of a run, once its end has arrived.
func (in *inbox) taken(runID string) (bodies string, whole bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.ended[runID] {
		return "", false
	}
	return in.bodies[runID].String(), true
}

func (in *inbox) count() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.n
}

// listen registers a webhook for the runs with the tag.
func (r *rig) listen() {
	r.t.Helper()
	r.inbox = r.openInbox()
	r.register(r.inbox.URL, hookEvents, hookTag)
}

// register registers a webhook. Its own secret is returned once and is not a planted one.
func (r *rig) register(to string, events []string, tag string) (id string) {
	r.t.Helper()
	a := r.do(http.MethodPost, "/v1/webhooks", mustJSON(map[string]any{"url": to, "events": events, "tags": []string{tag}}))
	require.Equal(r.t, http.StatusCreated, a.Status, "%s", a.Body)
	var made struct{ WebhookID string }
	require.NoError(r.t, a.JSON(&made))
	return made.WebhookID
}

// delivered fails unless the batch arrived at the places in a run's deliveries.
func (r *rig) delivered(b batch, runID string, places ...string) {
	r.t.Helper()
	var bodies string
	require.Eventually(r.t, func() (whole bool) {
		bodies, whole = r.inbox.taken(runID)
		return whole
	}, 100*time.Second, 2*time.Millisecond, "%s: the webhook was not sent all of run %s", b.name, runID)
	r.prove(b, bodies, places...)
}

// hooks plants in error answers of a receiver, in webhooks that are rejected, and in unknown
// webhook ids.
func (r *rig) hooks(b batch) {
	r.t.Helper()
	in, short := r.openInbox(), b.short()
	in.status, in.says = http.StatusServiceUnavailable, b.at("receiver's refusal")
	tag := "refused-" + r.runs[len(r.runs)-1]
	id := r.register(in.URL+"/in?of="+tag, []string{"run.started", "run.completed"}, tag)
	r.prove(b, r.run(map[string]any{"workflowId": "echo", "inputs": map[string]any{"text": b.at("input")}, "tags": []string{tag}}), "input")
	path := "/v1/webhooks/" + id
	require.Eventually(r.t, func() bool {
		a := r.do(http.MethodGet, path+"/deliveries?status=pending", "")
		return in.count() > 0 && strings.Contains(string(a.Body), `"status 503"`)
	}, 30*time.Second, 5*time.Millisecond, "%s: no delivery has failed", b.name)
	for _, at := range []string{"/v1/webhooks?limit=200", path + "/deliveries"} {
		a := r.do(http.MethodGet, at, "")
		require.Equal(r.t, http.StatusOK, a.Status, "%s", a.Body)
	}
	require.Equal(r.t, http.StatusOK, r.do(http.MethodPost, path+":rotate", `{}`).Status)
	r.refuse(http.MethodPost, path+":rotate", mustJSON(map[string]any{"overlapSeconds": short}))
	r.refuse(http.MethodGet, path+"/deliveries?status="+url.QueryEscape(short), "")
	require.Equal(r.t, http.StatusNoContent, r.do(http.MethodDelete, path, "").Status)
	for _, q := range [][2]string{{http.MethodDelete, ""}, {http.MethodPost, ":rotate"}, {http.MethodGet, "/deliveries"}} {
		r.refuse(q[0], "/v1/webhooks/"+url.PathEscape(short)+q[1], "")
	}
	r.refuseHooks(b, in.URL)
}

// refuseHooks plants in webhooks that are rejected. Unregistered secrets are allowed in them:
// receivers have tokens in their URLs.
func (r *rig) refuseHooks(b batch, to string) {
	r.t.Helper()
	short := b.short()
	bodies := []map[string]any{
		{"url": "not " + short, "events": []string{"run.completed"}}, // one of them is a URL
		{"url": to, "events": []string{short}},
		{"url": to, "events": []string{"run.completed"}, "secret": short},
		{"url": to, "events": []string{"run.completed"}, "tenantId": short},
		{"url": to, "events": []string{"run.completed"}, short: 1},
		{"url": "https://" + short + "@93.184.216.34/", "events": []string{"run.completed"}},
	}
	if !b.shaped() {
		for _, text := range []string{b.at("URL of a webhook"), short} {
			bodies = append(bodies, map[string]any{"url": to + "/" + url.PathEscape(text), "events": []string{"run.completed"}}, map[string]any{"url": to + "/?t=" + url.QueryEscape(text), "events": []string{"run.completed"}})
		}
		bodies = append(bodies, map[string]any{"url": to, "events": []string{"run.completed"}, "tags": []string{"a", short}})
	}
	for _, body := range bodies {
		r.refuse(http.MethodPost, "/v1/webhooks", mustJSON(body))
	}
}
