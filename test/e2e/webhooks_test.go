package e2e

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// inbox is a third-party server that receives webhooks.
type inbox struct {
	mu     sync.Mutex // guards the fields below
	status int
	got    []mail
}

type mail struct {
	header http.Header
	body   []byte
	taken  bool
}

func (b *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, mail{r.Header, body, b.status < 300})
	w.WriteHeader(b.status)
}

func (b *inbox) answer(status int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = status
}

func (b *inbox) all() []mail {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]mail(nil), b.got...)
}

// taken returns the accepted deliveries by run: their sequences in order.
func (b *inbox) taken(t *testing.T) map[string][]int {
	out := map[string][]int{}
	for _, m := range b.all() {
		var doc struct {
			RunID    string
			Sequence int
		}
		require.NoError(t, json.Unmarshal(m.body, &doc))
		if m.taken {
			out[doc.RunID] = append(out[doc.RunID], doc.Sequence)
		}
	}
	return out
}

const twoNodes = `{"id":"two","name":"two","version":"1","nodes":[
	{"id":"a","typeId":"core.delay","name":"a","position":{"x":0,"y":0},"config":{"delayMs":20},"inputs":{}},
	{"id":"b","typeId":"core.noop","name":"b","position":{"x":0,"y":0},"config":{},"inputs":{}}],
	"edges":[{"id":"e","sourceNodeId":"a","targetNodeId":"b"}],"triggers":[],"variables":[],"metadata":{},"settings":{}}`

const allowPrivate = "OPENWOP_WEBHOOK_ALLOW_PRIVATE=true"

// A host is killed while deliveries fail. All of them arrive, signed and in the order of their
// runs, and the log has no secret (OpenWOP host contract §10.5).
func TestWebhooks_SurviveAKill(t *testing.T) {
	t.Parallel()
	needsHost(t)
	var said output
	h := harness.StartWith(t, harness.Options{
		Args: []string{"--test-seams", "--log-level", "debug", "--lease", "1s", "--api-key", testKey + "=acme:*"}, Env: []string{allowPrivate}, Output: &said,
	})
	in := &inbox{status: http.StatusInternalServerError}
	to := httptest.NewServer(in)
	t.Cleanup(func() { to.Close() })
	c := h.Client(testKey)
	post := func(path, body string, want int) *harness.Answer {
		a, err := c.Do(t.Context(), http.MethodPost, path, body)
		require.NoError(t, err)
		require.Equal(t, want, a.Status, "%s", a.Body)
		return a
	}
	post("/v1/workflows", twoNodes, http.StatusCreated)
	var hook struct{ WebhookID, Secret string }
	body := fmt.Sprintf(`{"url":%q,"events":["run.started","node.started","node.completed","run.completed"]}`, to.URL+"/in?token=url-secret")
	require.NoError(t, post("/v1/webhooks", body, http.StatusCreated).JSON(&hook))

	want := map[string][]int{}
	run := func() {
		id := start(t, c, `{"workflowId":"two"}`)
		events, err := c.Finish(within(t, 30*time.Second), id)
		require.NoError(t, err)
		for _, e := range events {
			switch e.Type {
			case "run.started", "node.started", "node.completed", "run.completed":
				want[id] = append(want[id], e.Sequence)
			}
		}
		require.GreaterOrEqual(t, len(want[id]), 6)
	}
	run()
	run()
	require.Eventually(t, func() bool { return strings.Count(said.String(), "webhooks: delivery failed") >= 2 }, 30*time.Second, 10*time.Millisecond, "both are tried")
	h.Kill()
	to.Close() // a request that the killed host has sent ends before the answers change
	// Before the host restarts: two more failures would open the breaker for an hour.
	in.answer(http.StatusNoContent)
	to = serveAt(t, to.Listener.Addr().String(), in)
	h.Launch()
	c = h.Client(testKey)
	run()
	require.Eventually(t, func() bool { return len(flat(in.taken(t))) >= len(flat(want)) }, 3*time.Minute, 50*time.Millisecond, "all arrive") // the killed process held a probe
	require.Equal(t, want, in.taken(t), "each once, in order")
	messages := map[string]string{} // the event of each webhook-id
	for _, m := range in.all() {
		require.Equal(t, hook.WebhookID, m.header.Get("X-Openwop-Webhook-Id"))
		id := m.header.Get("Webhook-Id")
		require.NotEmpty(t, id)
		if body, again := messages[id]; again {
			require.Equal(t, body, string(m.body), "an id stands for one event, also after a restart")
		}
		messages[id] = string(m.body)
		mac := hmac.New(sha256.New, []byte(hook.Secret))
		mac.Write([]byte(m.header.Get("X-Openwop-Timestamp") + "."))
		mac.Write(m.body)
		require.Equal(t, "sha256="+hex.EncodeToString(mac.Sum(nil)), m.header.Get("X-Openwop-Signature"))
	}
	require.Len(t, messages, len(flat(want)), "each event has one id")
	a, err := c.Do(t.Context(), http.MethodDelete, "/v1/webhooks/"+hook.WebhookID, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusNoContent, a.Status)
	h.Stop()
	require.NotContains(t, said.String(), hook.Secret)
	require.NotContains(t, said.String(), "url-secret")
}

// serveAt starts a server at an address that another has left.
func serveAt(t *testing.T, addr string, h http.Handler) *httptest.Server {
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", addr)
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(h)
	require.NoError(t, s.Listener.Close())
	s.Listener = l
	s.Start()
	return s
}

func flat(m map[string][]int) []int {
	var out []int
	for _, v := range m {
		out = append(out, v...)
	}
	return out
}

// OpenWOP host contract §10.6: the test switch is rejected in production, and without it no private
// address is called.
func TestWebhooks_CallPublicAddressesOnly(t *testing.T) {
	t.Parallel()
	_, c := sharedHost(t)
	for _, url := range []string{"http://127.0.0.1:1/", "https://127.0.0.1:1/", "https://[::1]:1/", "https://localhost:1/"} {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/webhooks", fmt.Sprintf(`{"url":%q,"events":["run.completed"]}`, url))
		require.NoError(t, err)
		require.Equal(t, http.StatusBadRequest, a.Status)
		require.Equal(t, "webhook_url_rejected", a.Code(), url)
	}
}

// output records the host's output.
type output struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}
