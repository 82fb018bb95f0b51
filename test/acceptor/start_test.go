package acceptor

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/test/harness"
)

// An acceptor that starts before its NATS server waits for it and logs that.
func TestStart_WaitsForNATS(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	h := harness.Begin(t, "acceptor", "--nats", n.url())
	awaitHealth(t, h, healthv1.HealthCheckResponse_NOT_SERVING)
	client := acceptorv1.NewAcceptorClient(dial(t, h))
	_, err := client.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: ref("r"), NoSecrets: true})
	e, ok := fault.As(err)
	require.True(t, ok, "%v", err)
	require.Equal(t, fault.ServiceUnavailable, e.Code)
	require.Positive(t, e.RetryAfter)
	_, err = client.ListKinds(t.Context(), &acceptorv1.ListKindsRequest{})
	require.NoError(t, err, "services without a log must be served")

	n.start()
	h.Await()
	awaitHealth(t, h, healthv1.HealthCheckResponse_SERVING)
	_, err = client.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: ref("r"), NoSecrets: true})
	require.NoError(t, err)
	_, err = client.Accept(t.Context(), &acceptorv1.AcceptRequest{Run: ref("r"), NodeId: "ask", Envelope: envelope("c", "m")})
	require.NoError(t, err)
}

// The same for its redactor: until then nothing is accepted.
func TestStart_WaitsForTheRedactor(t *testing.T) {
	t.Parallel()
	url := broker(t)
	redactor := harness.Serve(t, "redactor")
	redactor.Kill()
	h := harness.Begin(t, "acceptor", "--nats", url, "--redactor", redactor.GRPC)
	awaitHealth(t, h, healthv1.HealthCheckResponse_NOT_SERVING)
	client := acceptorv1.NewAcceptorClient(dial(t, h))
	_, err := client.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: ref("r"), NoSecrets: true})
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), "%v", err)
	end, err := runs(t, url).End(t.Context())
	require.NoError(t, err)
	require.Zero(t, end, "nothing is recorded")

	redactor.Launch()
	h.Await()
	awaitHealth(t, h, healthv1.HealthCheckResponse_SERVING)
	_, err = client.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: ref("r"), NoSecrets: true})
	require.NoError(t, err)
}

// A permanent error ends the process. Its output has the reason and no password.
func TestStart_EndsImmediatelyWithAPermanentError(t *testing.T) {
	t.Parallel()
	guarded := newNATS(t)
	guarded.opts.Username, guarded.opts.Password = "u", "correct-horse"
	guarded.start()
	single := newNATS(t)
	single.start()
	absent := newNATS(t)
	for name, tc := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"a wrong password":       {[]string{"--nats", guarded.urlAs("u:hunter2hunter2")}, 1, "Authorization"},
		"too many copies":        {[]string{"--nats", single.url(), "--log-replicas", "3"}, 1, "replicas"},
		"no URL":                 {[]string{"--nats", "nats://u:hunter2hunter2@127.0.0.1:notaport"}, 2, "--nats"},
		"no credentials":         {[]string{"--nats", absent.url(), "--nats-creds", "no-such-file"}, 2, "--nats-creds"},
		"no kinds":               {[]string{"--nats", absent.url(), "--kinds", "no-such-dir"}, 2, "--kinds"},
		"a redactor of no token": {[]string{"--nats", absent.url(), "--redactor", "127.0.0.1:1", "--redactor-token-file", "no-such-file"}, 2, "--redactor"},
	} {
		h := harness.Begin(t, "acceptor", tc.args...)
		require.Equal(t, tc.status, h.Ended().ExitCode(), "%s: %s", name, h.Log())
		require.Contains(t, h.Log(), tc.want, name)
		require.NotContains(t, h.Log(), "hunter2", name)
	}
}

// A server without JetStream may still be forming its cluster.
func TestStart_WaitsForJetStreamAndLogsIt(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	n.opts.JetStream = false
	n.start()
	h := harness.Begin(t, "acceptor", "--nats", n.url())
	awaitHealth(t, h, healthv1.HealthCheckResponse_NOT_SERVING)
	require.Eventually(t, func() bool { return strings.Contains(h.Log(), "no JetStream at this server") }, 30*time.Second, 10*time.Millisecond)
	n.stop()
	n.opts.JetStream = true
	n.start()
	h.Await()
	awaitHealth(t, h, healthv1.HealthCheckResponse_SERVING)
}

// A waiting process can be stopped.
func TestStart_StopsWhileItWaits(t *testing.T) {
	t.Parallel()
	h := harness.Begin(t, "acceptor", "--nats", newNATS(t).url())
	awaitHealth(t, h, healthv1.HealthCheckResponse_NOT_SERVING)
	require.Zero(t, h.Stop().ExitCode(), h.Log())
}

// A redactor gets only the keys of the dispatcher's providers. Where tenants bring their keys,
// there are none.
func TestStart_ARedactorCallsNoModelAndNeedsNoKey(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, starts real processes: run without -short")
	}
	harness.Serve(t, "redactor", "--provider", "openai", "--provider", "anthropic")
	h := harness.Begin(t, "redactor", "--provider", "nobody")
	require.Equal(t, 2, h.Ended().ExitCode(), "an unknown provider must be an error")
	h.AwaitLog("--provider")
}
