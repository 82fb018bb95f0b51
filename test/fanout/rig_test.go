package fanout

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/natslink/natslinktest"
	"waybill.dev/waybill/test/harness"
)

func TestMain(m *testing.M) {
	m.Run()
	harness.Clean()
}

// broker is a NATS server with monitoring, as an operator runs one.
type broker struct{ url, monitor string }

func startBroker(t *testing.T) broker {
	t.Helper()
	srv := natslinktest.Serve(t, &server.Options{
		HTTPHost: "127.0.0.1", HTTPPort: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), SyncAlways: true, MaxPayload: 8 << 20,
	})
	return broker{srv.ClientURL(), "http://" + srv.MonitorAddr().String()}
}

// held is what clients hold at a NATS server.
type held struct{ consumers, subscriptions, connections int }

// held reads it from the server's monitoring.
func (b broker) held(t *testing.T) held {
	t.Helper()
	var js struct{ Consumers int }
	b.ask(t, "/jsz?consumers=1", &js)
	var conns struct {
		Connections []struct {
			Subscriptions int
		}
	}
	b.ask(t, "/connz?subs=1", &conns)
	h := held{consumers: js.Consumers, connections: len(conns.Connections)}
	for _, c := range conns.Connections {
		h.subscriptions += c.Subscriptions
	}
	return h
}

func (b broker) ask(t *testing.T, path string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.monitor+path, nil)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode, "%s", body)
	require.NoError(t, json.Unmarshal(body, into))
}

const (
	acme, beta = "key-acme", "key-beta"
	// gated is a workflow that waits for an approval and then makes events for a while.
	gated = "gated"
	steps = 6
)

// startHost starts one process of each service, with a workflow of each tenant, and returns the
// gateway.
func startHost(t *testing.T, b broker) *harness.Host {
	t.Helper()
	gateway := harness.ServeAll(t, []string{"--nats", b.url, "--nats-monitor", b.monitor}, "--api-key", acme+"=acme:*", "--api-key", beta+"=beta:*")
	for _, key := range []string{acme, beta} {
		a, err := gateway.Client(key).Do(t.Context(), http.MethodPost, "/v1/workflows", workflow())
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	}
	return gateway
}

func workflow() string {
	nodes := []string{`{"id":"gate","typeId":"core.approvalGate","name":"n","position":{"x":0,"y":0},"config":{"title":"Go on?","actions":["accept"]},"inputs":{}}`}
	var edges []string
	last := "gate"
	for i := range steps {
		id := fmt.Sprint("step", i)
		nodes = append(nodes, fmt.Sprintf(`{"id":%q,"typeId":"core.delay","name":"n","position":{"x":0,"y":0},"config":{"ms":50},"inputs":{}}`, id))
		edges = append(edges, fmt.Sprintf(`{"id":"e%d","sourceNodeId":%q,"targetNodeId":%q}`, i, last, id))
		last = id
	}
	return fmt.Sprintf(`{"id":%q,"name":"n","version":"1","nodes":[%s],"edges":[%s],"triggers":[],"variables":[],"metadata":{},"settings":{}}`,
		gated, strings.Join(nodes, ","), strings.Join(edges, ","))
}

// memory returns the resident memory of a process, in bytes.
func memory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Logf("the gateway's memory cannot be read: %v", err)
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return n << 10
}

// patient is a client without its own timeout. It waits while a busy host answers 503.
func patient(h *harness.Host, key string) *harness.Client {
	c := h.Client(key)
	c.HTTP = &http.Client{Transport: retrying{&http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 8}}}
	return c
}

// retrying sends a request again after the Retry-After of a 503.
type retrying struct{ http.RoundTripper }

func (t retrying) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		res, err := t.RoundTripper.RoundTrip(r)
		if err != nil || res.StatusCode != http.StatusServiceUnavailable {
			return res, err
		}
		after, err := strconv.Atoi(res.Header.Get("Retry-After"))
		if err != nil {
			return res, nil //nolint:nilerr // a 503 without the header is the answer
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if !lifecycle.Wait(r.Context(), time.Duration(after)*time.Second) {
			return nil, r.Context().Err()
		}
		r = r.Clone(r.Context())
		if r.GetBody != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

// begin starts a run that waits for an approval.
func begin(ctx context.Context, c *harness.Client) (string, error) {
	a, err := c.Do(ctx, http.MethodPost, "/v1/runs", `{"workflowId":"`+gated+`"}`, "Idempotency-Key", rand.Text())
	if err != nil {
		return "", err
	}
	var created struct{ RunID string }
	if err := a.JSON(&created); err != nil || created.RunID == "" {
		return "", fmt.Errorf("create run: %d %s", a.Status, a.Body)
	}
	return created.RunID, nil
}
