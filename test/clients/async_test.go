package clients

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/test/harness"
)

// The parser of the AsyncAPI Initiative finds no error and no warning.
func TestAsyncAPI_IsValid(t *testing.T) {
	t.Parallel()
	dir := typescript(t, "asyncapi.json", read(t, start(t), "/v1/asyncapi.json"))
	out := call(t, dir, "node", "asyncapi.js", "asyncapi.json")
	require.ElementsMatch(t, []string{
		"channel runEvents: 5", "channel runList: 1", "channel webhook: 1", "channel callback: 1", "channel runLog: 3",
	}, strings.Split(strings.TrimSpace(out), "\n"))
}

// sent collects what a host sends, and validates it with the message of the AsyncAPI document.
type sent struct {
	t *testing.T
	*harness.Description
	headers map[string][]string // the described headers by message

	mu   sync.Mutex // guards seen and bad
	seen map[string]bool
	bad  []error
}

func newSent(t *testing.T, doc []byte) *sent {
	t.Helper()
	d, err := harness.ReadDescription(doc)
	require.NoError(t, err)
	var v struct {
		Components struct {
			Messages map[string]struct {
				Headers struct {
					Ref string `json:"$ref"`
				}
			}
			Schemas map[string]struct{ Properties map[string]json.RawMessage }
		}
	}
	require.NoError(t, json.Unmarshal(doc, &v))
	s := &sent{t: t, Description: d, headers: map[string][]string{}, seen: map[string]bool{}}
	for name, m := range v.Components.Messages {
		s.headers[name] = nil
		for header := range v.Components.Schemas[strings.TrimPrefix(m.Headers.Ref, "#/components/schemas/")].Properties {
			s.headers[name] = append(s.headers[name], header)
		}
	}
	return s
}

// ordinary are headers of every request of HTTP; those of NATS begin with Nats-.
var ordinary = []string{"Accept-Encoding", "Content-Length", "Content-Type", "User-Agent"}

// message validates a message and its headers.
func (s *sent) message(name string, header map[string][]string, payload []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[name] = true
	if err := s.Validate([]string{"components", "messages", name, "payload"}, payload); err != nil {
		s.bad = append(s.bad, fmt.Errorf("%s: %w", name, err))
	}
	headers := map[string]string{}
	for h, v := range header {
		if slices.Contains(ordinary, h) || strings.HasPrefix(h, "Nats-") {
			continue
		}
		known := slices.IndexFunc(s.headers[name], func(described string) bool { return strings.EqualFold(described, h) })
		if known < 0 {
			s.bad = append(s.bad, fmt.Errorf("%s has the header %s, which is not described", name, h))
			continue
		}
		headers[s.headers[name][known]] = v[0]
	}
	if len(s.headers[name]) == 0 {
		return
	}
	doc, err := json.Marshal(headers)
	if err == nil {
		err = s.Validate([]string{"components", "messages", name, "headers"}, doc)
	}
	if err != nil {
		s.bad = append(s.bad, fmt.Errorf("headers of %s: %w", name, err))
	}
}

// all reports whether a message of each kind was seen, or one was invalid.
func (s *sent) all() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen) == len(s.headers) || len(s.bad) > 0
}

// ServeHTTP receives webhooks at /webhook, and callbacks at other paths.
func (s *sent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	name := "CallbackQuestion"
	if r.URL.Path == "/webhook" {
		name = "WebhookEvent"
	}
	s.message(name, r.Header, body)
	w.WriteHeader(http.StatusNoContent)
}

// What a host sends over SSE, HTTP and NATS has the shape of the document's messages, and each message
// of the document is sent.
func TestAsyncAPI_DescribesWhatIsSent(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
	host := harness.StartWith(t, harness.Options{
		Args: []string{"--test-seams", "--nats-addr", "127.0.0.1:0", "--durability", "process", "--workflows", "../../examples/small"},
		Env:  []string{"OPENWOP_WEBHOOK_ALLOW_PRIVATE=true"},
	})
	s := newSent(t, read(t, host, "/v1/asyncapi.json"))
	receiver := httptest.NewServer(s)
	t.Cleanup(receiver.Close)
	c := host.Client("dev-key")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	do := func(method, path, body string, into any) {
		t.Helper()
		a, err := c.Do(ctx, method, path, body)
		require.NoError(t, err)
		require.Less(t, a.Status, 300, "%s", a.Body)
		require.NoError(t, a.JSON(into))
	}
	var ignored, run struct{ RunID string }
	do(http.MethodPost, "/v1/webhooks", fmt.Sprintf(`{"url":%q,"events":["run.started","interrupt.requested","run.completed"]}`, receiver.URL+"/webhook"), &ignored)

	stop := s.frames(ctx, host)
	var following sync.WaitGroup
	follow := func(path string, name func(event string) string) {
		following.Go(func() {
			_, err := c.Stream(ctx, path, func(f harness.Frame) bool {
				if f.Event != "" {
					s.message(name(f.Event), nil, []byte(f.Data))
				}
				return !s.all()
			})
			if ctx.Err() == nil && err != nil {
				s.t.Errorf("stream %s: %v", path, err)
			}
		})
	}
	follow("/v1/runs:watch", func(string) string { return "RunSummary" })
	do(http.MethodPost, "/v1/runs", `{"workflowId":"triage","inputs":{"mail":"hello"}}`, &run)
	for _, query := range []string{"?streamMode=values", "?streamMode=debug", "?streamMode=messages", "?streamMode=updates&bufferMs=50"} {
		follow("/v1/runs/"+run.RunID+"/events"+query, streamMessage)
	}
	do(http.MethodPost, "/v1/runs", fmt.Sprintf(`{"workflowId":"small-gate","callbackUrl":%q}`, receiver.URL+"/callback"), &run)
	follow("/v1/runs/"+run.RunID+"/events", streamMessage)
	var erased struct{ RunID string }
	do(http.MethodPost, "/v1/runs", `{"workflowId":"triage","inputs":{"mail":"hello again"}}`, &erased)
	_, err := c.Finish(ctx, erased.RunID)
	require.NoError(t, err)
	a, err := c.Do(ctx, http.MethodDelete, "/v1/runs/"+erased.RunID, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, a.Status, "%s", a.Body)
	require.Eventually(t, func() bool {
		do(http.MethodPost, "/v1/runs/"+run.RunID+"/annotations", `{"target":{},"signal":{"kind":"label","label":"seen"}}`, &ignored)
		return s.all()
	}, 50*time.Second, 100*time.Millisecond, "each message is sent")
	cancel()
	following.Wait()
	stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	require.Empty(t, s.bad)
	for name := range s.headers {
		require.True(t, s.seen[name], name)
	}
}

// streamMessage returns the message of a server-sent event of a run.
func streamMessage(event string) string {
	switch event {
	case "state.snapshot":
		return "RunSnapshot"
	case "ai.message.chunk":
		return "OutputChunk"
	case "batch":
		return "Batch"
	case "run.annotated":
		return "Annotation"
	default:
		return "RunEvent"
	}
}

// frames reads the run log over NATS until the returned function is called.
func (s *sent) frames(ctx context.Context, host *harness.Host) (stop func()) {
	s.t.Helper()
	nc, err := nats.Connect(host.NATS, nats.UserInfo("default", "dev-key"), nats.CustomInboxPrefix("_INBOX_default"))
	require.NoError(s.t, err)
	js, err := jetstream.New(nc)
	require.NoError(s.t, err)
	consumer, err := js.Consumer(ctx, subject.Stream, subject.Consumer("default", subject.DefaultConsumer))
	require.NoError(s.t, err)
	var reading sync.WaitGroup
	reading.Go(func() {
		for ctx.Err() == nil {
			m, err := consumer.Next(jetstream.FetchMaxWait(5 * time.Second))
			if err != nil {
				continue // none in time, or the end
			}
			_, kind, err := subject.Parse(m.Subject())
			if err != nil {
				s.t.Errorf("%v", err)
				return
			}
			name := "Frame"
			if slices.Contains([]subject.Kind{subject.Start, subject.Open}, kind) {
				name = "RunRecord"
			}
			if kind == subject.Seal || kind == subject.Erase {
				name = "RemovedFrames"
			}
			s.message(name, m.Headers(), m.Data())
			_ = m.Ack()
		}
	})
	return func() {
		nc.Close()
		reading.Wait()
	}
}
