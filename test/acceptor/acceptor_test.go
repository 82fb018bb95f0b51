// Package acceptor runs acceptors as separate processes on one NATS server, like an operator with
// an external agent runtime.
package acceptor

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/test/harness"
)

// perRun is the number of envelopes per run.
const perRun = 20

// The log alone decides duplicates (OpenWOP envelope contract §9). With any number of acceptors,
// calls and kills, each correlationId has one outcome and one set of events.
func TestDedup_GivesEachEnvelopeOneOutcome(t *testing.T) {
	t.Parallel()
	const racers = 8
	ids := number(t, "DEDUP_IDS", 200)
	url := broker(t)
	hosts := []*harness.Host{harness.Serve(t, "acceptor", "--nats", url), harness.Serve(t, "acceptor", "--nats", url)}
	log := runs(t, url)
	clients := []acceptorv1.AcceptorClient{
		acceptorv1.NewAcceptorClient(dial(t, hosts[0])), acceptorv1.NewAcceptorClient(dial(t, hosts[1])),
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()

	outcomes := make([][]string, ids)
	var (
		mu   sync.Mutex
		done atomic.Int64
		wg   sync.WaitGroup
	)
	for racer := range racers {
		wg.Go(func() {
			client := clients[racer%len(clients)]
			for i := range ids {
				run := fmt.Sprintf("run-%d", i/perRun)
				if i%perRun == 0 {
					if err := opened(ctx, client, run); err != nil {
						t.Errorf("open %s: %v", run, err)
						return
					}
				}
				// Each racer sends a different document under the same key.
				outcome, err := emitted(ctx, client, run, envelope(fmt.Sprintf("c-%d", i), fmt.Sprintf("from %d", racer)))
				if err != nil {
					t.Errorf("accept %d: %v", i, err)
					return
				}
				mu.Lock()
				outcomes[i] = append(outcomes[i], outcome)
				mu.Unlock()
				done.Add(1)
			}
		})
	}
	// Kill one acceptor, then the other, at each tenth of the work.
	kills := 0
	for tenth := int64(1); tenth < 10; tenth++ {
		require.Eventually(t, func() bool { return done.Load() >= tenth*int64(ids*racers)/10 || t.Failed() }, 10*time.Minute, time.Millisecond)
		hosts[tenth%2].Restart()
		kills++
	}
	wg.Wait()
	require.False(t, t.Failed())

	for i, got := range outcomes {
		require.Len(t, got, racers, "c-%d", i)
		for _, o := range got {
			require.Equal(t, got[0], o, "c-%d", i)
			require.Contains(t, o, `"accepted"`)
		}
	}
	for r := range (ids + perRun - 1) / perRun {
		seen := recorded(t, log, fmt.Sprintf("run-%d", r))
		require.Len(t, seen, min(perRun, ids-r*perRun))
		for id, n := range seen {
			require.Equal(t, 1, n, "%s is recorded %d times", id, n)
		}
	}
	t.Logf("%d racers, %d ids, %d kills", racers, ids, kills)
}

// Deduplication does not use the broker's message ids (ADR 0013): frames have none.
func TestDedup_DoesNotRelyOnTheBroker(t *testing.T) {
	t.Parallel()
	url := broker(t)
	h := harness.Serve(t, "acceptor", "--nats", url)
	client := acceptorv1.NewAcceptorClient(dial(t, h))
	_, err := client.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: ref("r"), NoSecrets: true})
	require.NoError(t, err)
	_, err = client.Accept(t.Context(), &acceptorv1.AcceptRequest{Run: ref("r"), NodeId: "ask", Envelope: envelope("c", "m")})
	require.NoError(t, err)

	nc, err := nats.Connect(url)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	api, err := js.New(nc)
	require.NoError(t, err)
	stream, err := api.Stream(t.Context(), subject.Stream)
	require.NoError(t, err)
	info, err := stream.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, time.Second, info.Config.Duplicates)
	for seq := info.State.FirstSeq; seq <= info.State.LastSeq; seq++ {
		msg, err := stream.GetMsg(t.Context(), seq)
		require.NoError(t, err)
		require.Empty(t, msg.Header.Get(js.MsgIDHeader))
	}
}

// Without its redactor an acceptor rejects envelopes, and the same request later succeeds (OpenWOP
// envelope contract §26 case 12).
func TestRedactor_UnavailableMeansNothingIsRecorded(t *testing.T) {
	t.Parallel()
	url := broker(t)
	redactor := harness.Serve(t, "redactor")
	h := harness.Serve(t, "acceptor", "--nats", url, "--redactor", redactor.GRPC)
	client, log := acceptorv1.NewAcceptorClient(dial(t, h)), runs(t, url)
	_, err := client.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: ref("r"), NoSecrets: true})
	require.NoError(t, err)
	req := &acceptorv1.AcceptRequest{Run: ref("r"), NodeId: "ask", Envelope: envelope("c", "the password is hunter2hunter2")}

	redactor.Kill()
	_, err = client.Accept(t.Context(), req)
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	e, ok := fault.As(err)
	require.True(t, ok)
	require.Positive(t, e.RetryAfter)
	frames, err := log.Run(t.Context(), subject.Run{Tenant: "acme", RunID: "r"})
	require.NoError(t, err)
	require.Len(t, frames, 2, "the run's beginning and nothing else")
	awaitHealth(t, h, healthv1.HealthCheckResponse_NOT_SERVING)

	redactor.Launch()
	awaitHealth(t, h, healthv1.HealthCheckResponse_SERVING)
	// Its memory is lost: the run's secrets must be registered again.
	_, err = redactorv1.NewRedactorClient(dial(t, redactor)).Register(t.Context(), &redactorv1.RegisterRequest{
		Scope: &redactorv1.Scope{Tenant: "acme", RunId: "r"}, Secrets: []*redactorv1.Secret{{Id: "password", Value: "hunter2hunter2"}},
	})
	require.NoError(t, err)
	res, err := client.Accept(t.Context(), req)
	require.NoError(t, err)
	require.Contains(t, string(res.GetPayload()), "[REDACTED:password]", "%s", res.GetOutcome())
}

// A restarted redactor has no secrets. Until the executor has registered the run's secrets again,
// no envelope of the run is accepted (OpenWOP envelope contract §11, registry).
func TestRedactor_GetsTheSecretsAgainAfterARestart(t *testing.T) {
	t.Parallel()
	const secret, tenantSecret = "hunter2hunter2", "swordfish-of-the-tenant"
	url := broker(t)
	redactor := harness.Serve(t, "redactor", "--redact-shapes=false")
	h := harness.Serve(t, "acceptor", "--nats", url, "--redactor", redactor.GRPC)
	client, log := acceptorv1.NewAcceptorClient(dial(t, h)), runs(t, url)
	var registrations []string
	register := func() {
		registrations = nil
		for scope, s := range map[*redactorv1.Scope]*redactorv1.Secret{
			{Tenant: "acme", RunId: "r"}: {Id: "password", Value: secret}, {Tenant: "acme"}: {Id: "crm", Value: tenantSecret},
		} {
			res, err := redactorv1.NewRedactorClient(dial(t, redactor)).Register(t.Context(), &redactorv1.RegisterRequest{Scope: scope, Secrets: []*redactorv1.Secret{s}})
			require.NoError(t, err)
			registrations = append(registrations, res.GetRegistration())
		}
	}
	take := func(id string) (*acceptorv1.AcceptResponse, error) {
		return client.Accept(t.Context(), &acceptorv1.AcceptRequest{
			Run: ref("r"), NodeId: "ask", Envelope: envelope(id, "the word is "+secret+" "+tenantSecret), Registrations: registrations,
		})
	}
	_, err := client.OpenRun(t.Context(), &acceptorv1.OpenRunRequest{Run: ref("r")})
	require.NoError(t, err)
	register()
	res, err := take("c1")
	require.NoError(t, err)
	require.Contains(t, string(res.GetPayload()), "[REDACTED:password]")

	redactor.Kill()
	redactor.Launch()
	awaitHealth(t, h, healthv1.HealthCheckResponse_SERVING)
	_, err = patiently(t.Context(), func(context.Context) (*acceptorv1.AcceptResponse, error) {
		res, err := take("c2")
		if f, ok := fault.As(err); ok && f.Details["unregistered"] != nil {
			return nil, fault.New(fault.Forbidden, "scripted error")
		}
		return res, err // the connection may still be the old one
	})
	require.ErrorContains(t, err, "scripted error")
	register()
	res, err = take("c2")
	require.NoError(t, err)
	require.Contains(t, string(res.GetPayload()), "[REDACTED:password] [REDACTED:crm]")
	frames, err := log.Run(t.Context(), subject.Run{Tenant: "acme", RunID: "r"})
	require.NoError(t, err)
	require.Len(t, frames, 4)
	for _, f := range frames {
		require.NotContains(t, string(f.Body), secret)
		require.NotContains(t, string(f.Body), tenantSecret)
	}

	_, err = client.CloseRun(t.Context(), &acceptorv1.CloseRunRequest{Run: ref("r"), Status: "completed"})
	require.NoError(t, err)
	again, err := take("c2")
	require.NoError(t, err)
	require.Equal(t, res.GetOutcome(), again.GetOutcome())
	_, err = take("c3")
	require.Equal(t, fault.RunTerminal, fault.CodeOf(err), "forgotten: further envelopes must be rejected")
}
