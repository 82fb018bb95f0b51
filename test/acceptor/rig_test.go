package acceptor

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"waybill.dev/waybill/internal/freeport"
	"waybill.dev/waybill/internal/natslink/natslinktest"
	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/internal/runlog/jetstream"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	runlogv1 "waybill.dev/waybill/proto/gen/go/waybill/runlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/test/harness"
)

func TestMain(m *testing.M) {
	m.Run()
	harness.Clean()
}

// natsServer is a NATS server on the network. It can stop and restart at its address with its data.
type natsServer struct {
	t    *testing.T
	opts server.Options
	srv  *server.Server
}

// newNATS reserves an address for a server without starting one.
func newNATS(t *testing.T) *natsServer {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
	port, err := strconv.Atoi(freeport.Take(t))
	require.NoError(t, err)
	n := &natsServer{t: t, opts: server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: t.TempDir(), MaxPayload: 8 << 20,
	}}
	return n
}

func (n *natsServer) addr() string { return net.JoinHostPort(n.opts.Host, strconv.Itoa(n.opts.Port)) }

func (n *natsServer) url() string { return "nats://" + n.addr() }

// urlAs returns the URL with a user.
func (n *natsServer) urlAs(who string) string { return "nats://" + who + "@" + n.addr() }

func (n *natsServer) start() {
	n.t.Helper()
	opts := n.opts // the server modifies its options
	n.srv = natslinktest.Serve(n.t, &opts)
}

func (n *natsServer) stop() {
	if n.srv == nil {
		return
	}
	n.srv.Shutdown()
	n.srv.WaitForShutdown()
	n.srv = nil
}

// broker returns the URL of a running NATS server.
func broker(t *testing.T) string {
	t.Helper()
	n := newNATS(t)
	n.start()
	return n.url()
}

// runs opens the log without credentials.
func runs(t *testing.T, url string) *jetstream.Log {
	t.Helper()
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	log, err := jetstream.Open(t.Context(), nc, jetstream.DefaultConfig())
	require.NoError(t, err)
	return log
}

func dial(t *testing.T, h *harness.Host) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(h.GRPC, append(rpc.ClientOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 10 * time.Millisecond, Multiplier: 1, MaxDelay: 10 * time.Millisecond},
			MinConnectTimeout: 20 * time.Second, // otherwise an attempt is no longer than the backoff
		}),
	)...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func ref(run string) *runlogv1.RunRef {
	return &runlogv1.RunRef{Tenant: "acme", WorkflowId: "agent", RunId: run}
}

func envelope(correlationID, message string) []byte {
	return fmt.Appendf(nil, `{"type":"error","schemaVersion":1,"envelopeId":%q,"correlationId":%q,"payload":{"code":"x.y","message":%q},`+
		`"meta":{"source":"ai-generation","ts":"2026-01-31T12:00:00Z"}}`, fmt.Sprintf("env-%x", sha256.Sum256([]byte(message))), correlationID, message)
}

// patiently retries until the acceptor answers: it may be down.
func patiently[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	for {
		res, err := call(ctx)
		if code := fault.CodeOf(err); err == nil || ctx.Err() != nil || code != fault.ServiceUnavailable {
			return res, err
		}
	}
}

// opened opens a run, with retries.
func opened(ctx context.Context, client acceptorv1.AcceptorClient, run string) error {
	_, err := patiently(ctx, func(ctx context.Context) (*acceptorv1.OpenRunResponse, error) {
		return client.OpenRun(ctx, &acceptorv1.OpenRunRequest{Run: ref(run), NoSecrets: true}, grpc.WaitForReady(true))
	})
	return err
}

// emitted sends an envelope, with retries, and returns its outcome.
func emitted(ctx context.Context, client acceptorv1.AcceptorClient, run string, doc []byte) (string, error) {
	res, err := patiently(ctx, func(ctx context.Context) (*acceptorv1.AcceptResponse, error) {
		return client.Accept(ctx, &acceptorv1.AcceptRequest{Run: ref(run), NodeId: "ask", Envelope: doc}, grpc.WaitForReady(true))
	})
	return string(res.GetOutcome()), err
}

// number is a count that an environment variable can raise.
func number(t *testing.T, name string, fallback int) int {
	t.Helper()
	v := os.Getenv(name)
	if v == "" {
		return fallback
	}
	n, err := strconv.Atoi(v)
	require.NoError(t, err)
	return n
}

func awaitHealth(t *testing.T, h *harness.Host, want healthv1.HealthCheckResponse_ServingStatus) {
	t.Helper()
	client := healthv1.NewHealthClient(dial(t, h))
	require.Eventually(t, func() bool {
		res, err := client.Check(t.Context(), &healthv1.HealthCheckRequest{})
		return err == nil && res.GetStatus() == want
	}, 30*time.Second, 20*time.Millisecond, want)
}

// recorded counts the events of each envelope of a run, by correlationId.
func recorded(t *testing.T, log *jetstream.Log, run string) map[string]int {
	t.Helper()
	frames, err := log.Run(t.Context(), subject.Run{Tenant: "acme", RunID: run})
	require.NoError(t, err)
	require.NoError(t, frame.VerifyChain(frames))
	seen := map[string]int{}
	for _, f := range frames {
		events, err := f.Events()
		require.NoError(t, err)
		for _, e := range events {
			if e.CausationID != "" {
				seen[e.CausationID]++
			}
		}
	}
	return seen
}
