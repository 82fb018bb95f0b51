package acceptor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/test/harness"
)

// answer is the result of an Accept call.
type answer struct {
	res *acceptorv1.AcceptResponse
	err error
}

// between runs an acceptor behind a proxy until envelope c is in the log of run r and the acceptor
// has not received the acknowledgement.
func between(t *testing.T) (n *natsServer, p *proxy, h *harness.Host, answered <-chan answer) {
	t.Helper()
	n = newNATS(t)
	n.start()
	p = newProxy(t, n.addr())
	h = harness.Serve(t, "acceptor", "--nats", p.url())
	client := acceptorv1.NewAcceptorClient(dial(t, h))
	_, err := client.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: ref("r"), NoSecrets: true})
	require.NoError(t, err)
	p.muteAtAppend()
	done := make(chan answer, 1)
	go func() {
		res, err := client.Accept(t.Context(), &acceptorv1.AcceptRequest{Run: ref("r"), NodeId: "ask", Envelope: envelope("c", "the first")})
		done <- answer{res, err}
	}()
	log := runs(t, n.url())
	require.Eventually(t, func() bool { return recorded(t, log, "r")["c"] == 1 }, 30*time.Second, time.Millisecond, "the envelope is in the log")
	select {
	case a := <-done:
		require.Fail(t, "answered before the log's acknowledgement", "%v", a)
	default:
	}
	return n, p, h, done
}

// The process dies after the append and before the answer. A repeated call returns the recorded
// outcome and records nothing (OpenWOP envelope contract §9, §26 case 10).
func TestCrash_BetweenAppendAndAnswerLeavesOneOutcome(t *testing.T) {
	t.Parallel()
	n, p, h, answered := between(t)
	h.Kill()
	a := <-answered
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(a.err), "%v", a.err)
	p.speak()
	h.Launch()

	log := runs(t, n.url())
	end, err := log.End(t.Context())
	require.NoError(t, err)
	client := acceptorv1.NewAcceptorClient(dial(t, h))
	var first *acceptorv1.AcceptResponse
	// A model called again may answer differently.
	for _, message := range []string{"the first", "the first", "another"} {
		res, err := client.Accept(t.Context(), &acceptorv1.AcceptRequest{Run: ref("r"), NodeId: "ask", Envelope: envelope("c", message)})
		require.NoError(t, err)
		if first == nil {
			first = res
			require.Contains(t, string(res.GetOutcome()), `"accepted"`)
			require.Contains(t, string(res.GetPayload()), "the first")
		}
		require.Equal(t, string(first.GetOutcome()), string(res.GetOutcome()))
		require.Equal(t, string(first.GetPayload()), string(res.GetPayload()))
		require.Equal(t, first.GetEvents(), res.GetEvents())
	}
	after, err := log.End(t.Context())
	require.NoError(t, err)
	require.Equal(t, end, after, "a repeated call must record nothing")
	require.Equal(t, map[string]int{"c": 1}, recorded(t, log, "r"))
}

// The acknowledgement is lost and the process lives: it finds its frame in the log and answers.
func TestCrash_OfTheConnectionLosesNoAnswer(t *testing.T) {
	t.Parallel()
	n, p, _, answered := between(t)
	p.cut()
	p.speak()
	a := <-answered
	require.NoError(t, a.err)
	require.Contains(t, string(a.res.GetOutcome()), `"accepted"`)
	require.Equal(t, map[string]int{"c": 1}, recorded(t, runs(t, n.url()), "r"))
}

// A connected server that never answers counts as unavailable.
func TestNATS_SilenceIsReportedSoon(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	n.start()
	p := newProxy(t, n.addr())
	h := harness.Serve(t, "acceptor", "--nats", p.url())
	client := acceptorv1.NewAcceptorClient(dial(t, h))
	_, err := client.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: ref("r"), NoSecrets: true})
	require.NoError(t, err)
	p.muteNow()
	began := time.Now()
	_, err = client.Accept(t.Context(), &acceptorv1.AcceptRequest{Run: ref("r"), NodeId: "ask", Envelope: envelope("c", "m")})
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), "%v", err)
	require.Less(t, time.Since(began), soon)
	awaitHealth(t, h, healthv1.HealthCheckResponse_NOT_SERVING)
	p.speak()
	awaitHealth(t, h, healthv1.HealthCheckResponse_SERVING)
	_, err = client.Accept(t.Context(), &acceptorv1.AcceptRequest{Run: ref("r"), NodeId: "ask", Envelope: envelope("c", "m")})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"c": 1}, recorded(t, runs(t, n.url()), "r"))
}
