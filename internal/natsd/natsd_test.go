package natsd_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/natsperm"
	"waybill.dev/waybill/internal/natsperm/natspermtest"
	"waybill.dev/waybill/protocol/subject"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, natsdtest.LeftBehind()...)
}

const patience = 20 * time.Second

func start(t *testing.T, change func(*natsd.Config)) *natsd.Server {
	t.Helper()
	cfg := natsd.Config{Dir: t.TempDir(), Sync: true, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	s, err := natsd.Start(t.Context(), cfg, "secret")
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return s
}

// stream creates the run log's stream over an in-process connection.
func stream(t *testing.T, s *natsd.Server) jetstream.JetStream {
	t.Helper()
	nc, err := s.Connect("test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{
		Name:     subject.Stream,
		Subjects: []string{subject.All},
	})
	require.NoError(t, err)
	return js
}

func publish(ctx context.Context, js jetstream.JetStream, tenant string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := js.Publish(ctx, subject.Run{Tenant: tenant, WorkflowID: "w", RunID: "r"}.Frame(subject.Start), []byte("{}"))
	return err
}

func TestRestart_KeepsDataConnectionsAndAddress(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *natsd.Config) { c.Addr = "127.0.0.1:0" })
	js := stream(t, s)
	require.NoError(t, publish(t.Context(), js, "acme"))
	require.NoError(t, s.Ready())
	addr := s.Addr()

	s.Stop()
	require.Error(t, s.Ready())
	require.Error(t, publish(t.Context(), js, "acme"))
	_, err := s.Connect("late")
	require.ErrorContains(t, err, "down")

	require.NoError(t, s.Restart())
	require.NoError(t, s.Ready())
	require.Equal(t, addr, s.Addr())
	require.Eventually(t, func() bool { return publish(t.Context(), js, "acme") == nil }, patience, time.Millisecond)
	info, err := js.Stream(t.Context(), subject.Stream)
	require.NoError(t, err)
	require.GreaterOrEqual(t, info.CachedInfo().State.Msgs, uint64(2))
}

func TestWatch_IgnoresAHealthyServerAndEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Watch(ctx) }()
	cancel()
	require.NoError(t, <-done)
	require.NoError(t, s.Ready())
}

func TestStart_ReportsAWrongAddress(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{
		"localhost": "want host:port", "127.0.0.1:many": "port must be a number", "127.0.0.1:70000": "from 0 to 65535",
	} {
		_, err := natsd.Start(t.Context(), natsd.Config{Dir: t.TempDir(), Addr: addr, Log: slog.New(slog.DiscardHandler)}, "secret")
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, addr)
	}
}

// reader connects as a tenant's user.
func reader(t *testing.T, s *natsd.Server, user, password string) (*nats.Conn, error) {
	t.Helper()
	nc, err := nats.Connect(s.Addr(), nats.UserInfo(user, password), nats.PermissionErrOnSubscribe(true), nats.CustomInboxPrefix(natsperm.Reader{User: user}.Inbox()),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // a rejected subject is also returned by the call
	if err == nil {
		t.Cleanup(nc.Close)
	}
	return nc, err
}

func TestUsers_ReadTheirTenantAndNothingElse(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *natsd.Config) {
		c.Addr = "127.0.0.1:0"
		c.Users = []natsd.User{
			{Name: "acme", Password: "a-key", Tenant: "acme"},
			{Name: "beta", Password: "b-key", Tenant: "beta"},
		}
	})
	own := stream(t, s)
	for _, tenant := range []string{"acme", "beta"} {
		require.NoError(t, publish(t.Context(), own, tenant))
		require.NoError(t, natsperm.Consumer{Tenant: tenant, Name: subject.DefaultConsumer}.Make(t.Context(), own))
	}

	_, err := reader(t, s, "acme", "b-key")
	require.ErrorIs(t, err, nats.ErrAuthorization)
	nc, err := reader(t, s, "acme", "a-key")
	require.NoError(t, err)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c, err := js.Consumer(ctx, subject.Stream, subject.Consumer("acme", subject.DefaultConsumer))
	require.NoError(t, err)
	batch, err := c.Fetch(2, jetstream.FetchMaxWait(500*time.Millisecond))
	require.NoError(t, err)
	var got []string
	for m := range batch.Messages() {
		got = append(got, m.Subject())
		require.NoError(t, m.DoubleAck(ctx))
	}
	require.Equal(t, []string{subject.Run{Tenant: "acme", WorkflowID: "w", RunID: "r"}.Frame(subject.Start)}, got)

	for range natsperm.MaxConnections - 1 {
		_, err = reader(t, s, "acme", "a-key")
		require.NoError(t, err)
	}
	_, err = reader(t, s, "acme", "a-key")
	require.ErrorContains(t, err, "maximum account active connections")

	require.NoError(t, publish(t.Context(), own, "acme"))
	natspermtest.Fenced(t, nc, own, natsperm.Reader{
		User:      "acme",
		Tenant:    "acme",
		Consumers: []string{subject.DefaultConsumer},
	}, "beta")
}
