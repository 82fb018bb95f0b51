package peer

import (
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"waybill.dev/waybill/internal/rpc"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
	remote "waybill.dev/waybill/services/dispatcher/clients"
	"waybill.dev/waybill/services/redactor"
	"waybill.dev/waybill/services/redactor/redact"
)

// redactors are two redactors; the second can be stopped and restarted.
type redactors struct {
	client redactorv1.RedactorClient
	tenant string // routed to the second redactor while it serves
	second *health.Server
}

// patience is for busy machines.
const patience = 30 * time.Second

// whose is a text whose redaction identifies the redactor.
const whose = "which-redactor-are-you"

func twoRedactors(t *testing.T) *redactors {
	t.Helper()
	var (
		out   redactors
		addrs string
	)
	for _, id := range []string{"first", "second"} {
		cfg := redactor.DefaultConfig()
		cfg.Shapes, cfg.HostSecrets = false, []redact.Secret{{ID: id, Value: whose}}
		s, err := redactor.New(cfg)
		require.NoError(t, err)
		server := rpc.NewServer(slog.New(slog.DiscardHandler), nil, nil)
		s.Register(server)
		out.second = health.NewServer()
		healthv1.RegisterHealthServer(server, out.second)
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		go func() { _ = server.Serve(lis) }()
		t.Cleanup(server.Stop)
		addrs += "," + lis.Addr().String()
	}
	conn, err := Address{Addr: addrs[1:]}.Dial(func(f func()) { t.Cleanup(f) }, ToRedactors()...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	out.client = redactorv1.NewRedactorClient(conn)
	for _, id := range []string{"first", "second"} { // with both redactors, each has some of these
		require.Eventually(t, func() bool {
			for i := range 32 {
				if out.tenant = fmt.Sprint("tenant-", i); out.holds(t) == id {
					return true
				}
			}
			return false
		}, patience, 10*time.Millisecond)
	}
	for i := range 32 { // tenants of the second redactor
		if out.tenant = fmt.Sprint("tenant-", i); out.holds(t) == "second" {
			return &out
		}
	}
	t.Fatal("no tenant is the second's")
	return nil
}

// holds returns the redactor of the tenant; empty without an answer.
func (r *redactors) holds(t *testing.T) string {
	t.Helper()
	res, err := r.client.Redact(t.Context(), &redactorv1.RedactRequest{
		Scope: &redactorv1.Scope{Tenant: r.tenant},
		Texts: []string{whose},
	})
	if err != nil {
		return ""
	}
	var id string
	_, err = fmt.Sscanf(res.GetTexts()[0], "[REDACTED:%s", &id)
	require.NoError(t, err)
	return id[:len(id)-1]
}

// move routes the tenant to one of the two.
func (r *redactors) move(t *testing.T, to string) {
	t.Helper()
	status := healthv1.HealthCheckResponse_SERVING
	if to == "first" {
		status = healthv1.HealthCheckResponse_NOT_SERVING
	}
	r.second.SetServingStatus("", status)
	require.Eventually(t, func() bool { return r.holds(t) == to }, patience, 10*time.Millisecond)
}

const aRun = "run-1"

// moved returns a run that registered one secret with the first redactor and another with the second,
// and is routed to the first again.
func (r *redactors) moved(t *testing.T) (remote.Redactor, remote.Secrets) {
	t.Helper()
	r.move(t, "first")
	registrations := remote.NewRegistrations(r.client)
	scrub, keys := remote.Redactor{Client: r.client, Registrations: registrations}, remote.Secrets{Registrations: registrations}
	require.NoError(t, keys.Hide(t.Context(), r.tenant, aRun, "p", "key", "secret-of-monday"))
	r.move(t, "second")
	out, _, err := scrub.Redact(t.Context(), r.tenant, aRun, true, [][]byte{[]byte(`"secret-of-monday"`)})
	require.NoError(t, err, "the first redactor's secrets are registered with the second")
	require.Equal(t, `"[REDACTED:p.key]"`, string(out[0]))
	require.NoError(t, keys.Hide(t.Context(), r.tenant, aRun, "p", "key", "secret-of-tuesday"))
	r.move(t, "first")
	return scrub, keys
}

// OpenWOP envelope contract §11, registry: a redactor that gets a tenant back lacks the secrets
// registered with another one. They are registered before it redacts anything.
func TestRedactors_RegisterLaterSecretsAfterATenantReturns(t *testing.T) {
	t.Parallel()
	const said, want = `"secret-of-monday, secret-of-tuesday"`, `"[REDACTED:p.key], [REDACTED:p.key]"`
	t.Run("documents", func(t *testing.T) {
		t.Parallel()
		r := twoRedactors(t)
		scrub, _ := r.moved(t)
		out, changed, err := scrub.Redact(t.Context(), r.tenant, aRun, true, [][]byte{[]byte(said)})
		require.NoError(t, err)
		require.True(t, changed)
		require.Equal(t, want, string(out[0]))
	})
	t.Run("a stream", func(t *testing.T) {
		t.Parallel()
		r := twoRedactors(t)
		scrub, _ := r.moved(t)
		text, err := scrub.Scrubber(r.tenant, aRun, true).Open(t.Context())
		require.NoError(t, err)
		defer text.Close()
		out, err := text.Push(said[:10], false)
		require.NoError(t, err)
		rest, err := text.Push(said[10:], true)
		require.NoError(t, err)
		require.Equal(t, want, out+rest)
	})
	t.Run("a caller with the names of the registrations only", func(t *testing.T) {
		t.Parallel()
		r := twoRedactors(t)
		r.moved(t)
		r.move(t, "second")
		scope := &redactorv1.Scope{Tenant: r.tenant, RunId: aRun}
		res, err := r.client.Register(t.Context(), &redactorv1.RegisterRequest{
			Scope:   scope,
			Secrets: []*redactorv1.Secret{{Id: "p.key", Value: "secret-of-tuesday"}},
		})
		require.NoError(t, err)
		scope.RequireRegistered, scope.Registrations = true, []string{res.GetRegistration()}
		r.move(t, "first")
		_, err = r.client.Redact(t.Context(), &redactorv1.RedactRequest{Scope: scope, Texts: []string{said}})
		require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	})
	t.Run("a run that has ended", func(t *testing.T) {
		t.Parallel()
		r := twoRedactors(t)
		scrub, keys := r.moved(t)
		require.NoError(t, keys.Close(t.Context(), r.tenant, aRun))
		_, _, err := scrub.Redact(t.Context(), r.tenant, aRun, true, [][]byte{[]byte(said)})
		require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), "its registrations are forgotten here, too")
	})
}
