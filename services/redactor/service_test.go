package redactor_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/internal/rpc/rpctest"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/redactor"
	"waybill.dev/waybill/services/redactor/redact"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config(change func(*redactor.Config)) redactor.Config {
	cfg := redactor.DefaultConfig()
	cfg.HostSecrets = []redact.Secret{{ID: "host", Value: "host-secret-value"}}
	if change != nil {
		change(&cfg)
	}
	return cfg
}

// client starts a redactor with an in-memory listener.
func client(t *testing.T, cfg redactor.Config) redactorv1.RedactorClient {
	t.Helper()
	s, err := redactor.New(cfg)
	require.NoError(t, err)
	server := rpc.NewServer(slog.New(slog.DiscardHandler), nil, nil)
	s.Register(server)
	conn, _ := rpctest.Serve(t, server)
	return redactorv1.NewRedactorClient(conn)
}

func run(id string) *redactorv1.Scope { return &redactorv1.Scope{Tenant: "acme", RunId: id} }

func TestRedact_RedactsDocumentsAndTextsInOrder(t *testing.T) {
	t.Parallel()
	c := client(t, config(nil))
	_, err := c.Register(t.Context(), &redactorv1.RegisterRequest{
		Scope:   run("1"),
		Secrets: []*redactorv1.Secret{{Id: "k", Value: "run-secret-value"}},
	})
	require.NoError(t, err)
	req := &redactorv1.RedactRequest{
		Scope: run("1"), Documents: [][]byte{[]byte(`{"a":"run-secret-value"}`), []byte(`7`)},
		Texts: []string{"plain", "host-secret-value and run-secret-value"},
	}
	resp, err := c.Redact(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, `{"a":"[REDACTED:k]"}`, string(resp.GetDocuments()[0]))
	require.Equal(t, `7`, string(resp.GetDocuments()[1]))
	require.Equal(t, []string{"plain", "[REDACTED:host] and [REDACTED:k]"}, resp.GetTexts())
	require.EqualValues(t, 3, resp.GetCount())

	_, err = c.Forget(t.Context(), &redactorv1.ForgetRequest{Scope: run("1")})
	require.NoError(t, err)
	resp, err = c.Redact(t.Context(), req)
	require.NoError(t, err)
	require.EqualValues(t, 1, resp.GetCount(), "only the host's secret is known now")
}

func TestRedact_RefusesUnusableRequests(t *testing.T) {
	t.Parallel()
	c := client(t, config(func(cfg *redactor.Config) { cfg.MaxItems, cfg.MaxBytes, cfg.MaxDepth = 2, 64, 3 }))
	tests := map[string]struct {
		req  *redactorv1.RedactRequest
		code fault.Code
	}{
		"no scope": {&redactorv1.RedactRequest{Texts: []string{"x"}}, fault.ValidationError},
		"too many": {&redactorv1.RedactRequest{Scope: run("1"), Texts: []string{"x", "y", "z"}}, fault.PayloadTooLarge},
		"too large": {
			&redactorv1.RedactRequest{Scope: run("1"), Texts: []string{strings.Repeat("x", 65)}},
			fault.PayloadTooLarge,
		},
		"not JSON": {
			&redactorv1.RedactRequest{Scope: run("1"), Documents: [][]byte{[]byte(`{"leaked":`)}},
			fault.ValidationError,
		},
		"too deep": {
			&redactorv1.RedactRequest{Scope: run("1"), Documents: [][]byte{[]byte(`[[[[]]]]`)}},
			fault.ValidationError,
		},
		"duplicates": {
			&redactorv1.RedactRequest{Scope: run("1"), Documents: [][]byte{[]byte(`{"leaked":1,"leaked":2}`)}},
			fault.ValidationError,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := c.Redact(t.Context(), tc.req)
			require.Equal(t, tc.code, fault.CodeOf(err))
			require.NotContains(t, fmt.Sprint(err), "leaked")
			f, _ := fault.As(err)
			require.NotContains(t, string(f.Envelope()), "leaked")
			unread := len(tc.req.GetDocuments()) > 0
			require.Equal(t, unread, f.Details["rule"] != nil, "callers tell by it that the document is never taken")
		})
	}
}

func TestRedact_FailsClosedForAnUnregisteredRun(t *testing.T) {
	t.Parallel()
	c := client(t, config(nil))
	req := &redactorv1.RedactRequest{Scope: run("1"), Texts: []string{"x"}}
	_, err := c.Redact(t.Context(), req)
	require.NoError(t, err, "no registrations are required")
	req.Scope.RequireRegistered = true
	_, err = c.Redact(t.Context(), req)
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	f, _ := fault.As(err)
	require.Equal(t, []any{"run"}, f.Details["unregistered"])
	stream, err := c.RedactStream(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&redactorv1.RedactStreamRequest{Scope: req.GetScope(), Text: "x"}))
	_, err = stream.Recv()
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))

	registered, err := c.Register(t.Context(), &redactorv1.RegisterRequest{Scope: run("1")})
	require.NoError(t, err)
	_, err = c.Redact(t.Context(), req)
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), "the registrations are not named")
	req.Scope.Registrations = []string{registered.GetRegistration()}
	_, err = c.Redact(t.Context(), req)
	require.NoError(t, err)
	_, err = c.Forget(t.Context(), &redactorv1.ForgetRequest{Scope: run("1")})
	require.NoError(t, err)
	_, err = c.Redact(t.Context(), req)
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), "forgotten")
}

// OpenWOP envelope contract §11, registry: the tenant's secrets end with the process, too.
// A registration of the run does not replace the tenant's.
func TestRedact_FailsClosedForAnUnregisteredTenant(t *testing.T) {
	t.Parallel()
	c := client(t, config(nil))
	registered, err := c.Register(t.Context(), &redactorv1.RegisterRequest{Scope: run("1")})
	require.NoError(t, err)
	needs := run("1")
	needs.RequireRegistered, needs.RequireTenantRegistered = true, true
	needs.Registrations = []string{registered.GetRegistration()}
	req := &redactorv1.RedactRequest{Scope: needs, Texts: []string{"tenant-secret"}}
	_, err = c.Redact(t.Context(), req)
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	f, _ := fault.As(err)
	require.Equal(t, []any{"tenant"}, f.Details["unregistered"])

	registered, err = c.Register(t.Context(), &redactorv1.RegisterRequest{
		Scope: &redactorv1.Scope{Tenant: "acme"}, Secrets: []*redactorv1.Secret{{Id: "t", Value: "tenant-secret"}},
	})
	require.NoError(t, err)
	needs.Registrations = append(needs.Registrations, registered.GetRegistration())
	resp, err := c.Redact(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, []string{"[REDACTED:t]"}, resp.GetTexts())
}

func TestRegister_RefusesWithoutShowingTheValue(t *testing.T) {
	t.Parallel()
	c := client(t, config(nil))
	for name, req := range map[string]*redactorv1.RegisterRequest{
		"no tenant": {
			Scope:   &redactorv1.Scope{RunId: "1"},
			Secrets: []*redactorv1.Secret{{Id: "k", Value: "run-secret-value"}},
		},
		"bad id": {Scope: run("1"), Secrets: []*redactorv1.Secret{{Id: "run-secret-value", Value: "run-secret-value"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.Register(t.Context(), req)
			require.Equal(t, fault.ValidationError, fault.CodeOf(err))
			require.NotContains(t, err.Error(), "run-secret-value")
		})
	}
	_, err := c.Forget(t.Context(), &redactorv1.ForgetRequest{Scope: &redactorv1.Scope{Tenant: "acme"}})
	require.Equal(t, fault.ValidationError, fault.CodeOf(err))
}

func TestRedactStream_NeverEmitsASplitSecret(t *testing.T) {
	t.Parallel()
	c := client(t, config(nil))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stream, err := c.RedactStream(ctx)
	require.NoError(t, err)
	var shown strings.Builder
	count := int32(0)
	pieces := []string{"key: host-", "secret-", "value, grü", "ße", " host-sec"}
	for i, p := range pieces {
		require.NoError(t, stream.Send(&redactorv1.RedactStreamRequest{Scope: run("1"), Text: p, Last: i == len(pieces)-1}))
		resp, err := stream.Recv()
		require.NoError(t, err)
		require.NotContains(t, shown.String(), "host-")
		shown.WriteString(resp.GetText())
		count += resp.GetCount()
	}
	require.Equal(t, "key: [REDACTED:host], grüße host-sec", shown.String())
	require.EqualValues(t, 1, count)
}

func TestRedactStream_NeedsAScopeAndBoundedPieces(t *testing.T) {
	t.Parallel()
	c := client(t, config(func(cfg *redactor.Config) { cfg.MaxBytes = 8 }))
	for name, tc := range map[string]struct {
		req  *redactorv1.RedactStreamRequest
		code fault.Code
	}{
		"no scope":  {&redactorv1.RedactStreamRequest{Text: "x"}, fault.ValidationError},
		"too large": {&redactorv1.RedactStreamRequest{Scope: run("1"), Text: "123456789"}, fault.PayloadTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stream, err := c.RedactStream(ctx)
			require.NoError(t, err)
			require.NoError(t, stream.Send(tc.req))
			_, err = stream.Recv()
			require.Equal(t, tc.code, fault.CodeOf(err))
		})
	}
}

func TestConfig_ValidateReportsEveryProblem(t *testing.T) {
	t.Parallel()
	require.NoError(t, redactor.DefaultConfig().Validate())
	bad := redactor.Config{HostSecrets: []redact.Secret{{Value: "host-secret-value"}}}
	_, err := redactor.New(bad)
	require.Error(t, err)
	for _, part := range []string{
		"max_items", "max_bytes", "max_depth", "limits.scopes", "limits.secrets", "limits.value_bytes",
		"limits.scope_bytes", "host_secrets[0]",
	} {
		require.Contains(t, err.Error(), part)
	}
	require.NotContains(t, err.Error(), "host-secret-value")
}

func TestConfig_WarnsOfSecretsTooShortToMatch(t *testing.T) {
	t.Parallel()
	cfg := config(func(c *redactor.Config) {
		c.HostSecrets = append(c.HostSecrets, redact.Secret{ID: "tiny", Value: "1234567"})
	})
	require.NoError(t, cfg.Validate())
	require.Len(t, cfg.Warnings(), 1)
	require.Contains(t, cfg.Warnings()[0], "tiny")
	require.NotContains(t, cfg.Warnings()[0], "1234567")
}

func TestConfig_PrintsNoSecret(t *testing.T) {
	t.Parallel()
	require.NotContains(t, fmt.Sprintf("%+v %#v", config(nil), config(nil)), "host-secret-value")
}

// Streams of different runs share only the host's secrets.
func TestRedactStream_RunsConcurrently(t *testing.T) {
	t.Parallel()
	c := client(t, config(nil))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	errs := make(chan error, 8)
	for g := range cap(errs) {
		go func() { errs <- streamed(ctx, c, fmt.Sprint("run-", g)) }()
	}
	for range cap(errs) {
		require.NoError(t, <-errs)
	}
}

// streamed sends a secret of the run byte by byte.
func streamed(ctx context.Context, c redactorv1.RedactorClient, id string) error {
	own := "secret-of-" + id
	if _, err := c.Register(ctx, &redactorv1.RegisterRequest{
		Scope:   run(id),
		Secrets: []*redactorv1.Secret{{Id: "own", Value: own}},
	}); err != nil {
		return err
	}
	stream, err := c.RedactStream(ctx)
	if err != nil {
		return err
	}
	text, shown := "<"+own+"> <secret-of-nobody>", ""
	for i := range len(text) {
		if err := stream.Send(&redactorv1.RedactStreamRequest{
			Scope: run(id),
			Text:  text[i : i+1],
			Last:  i == len(text)-1,
		}); err != nil {
			return err
		}
		resp, err := stream.Recv()
		if err != nil {
			return err
		}
		shown += resp.GetText()
	}
	if want := "<[REDACTED:own]> <secret-of-nobody>"; shown != want {
		return fmt.Errorf("run %s: shown %q, want %q", id, shown, want)
	}
	return nil
}

func TestRedactStream_EndsWithTheClient(t *testing.T) {
	t.Parallel()
	c := client(t, config(nil))
	stream, err := c.RedactStream(t.Context())
	require.NoError(t, err)
	require.NoError(t, stream.Send(&redactorv1.RedactStreamRequest{Scope: run("1"), Text: "host-"}))
	_, err = stream.Recv()
	require.NoError(t, err)
	require.NoError(t, stream.CloseSend())
	_, err = stream.Recv()
	require.ErrorIs(t, err, io.EOF)
}

// The scope of the first piece is used. Later pieces cannot change it.
func TestRedactStream_KeepsTheScopeOfTheFirstPiece(t *testing.T) {
	t.Parallel()
	c := client(t, config(nil))
	_, err := c.Register(t.Context(), &redactorv1.RegisterRequest{
		Scope:   run("1"),
		Secrets: []*redactorv1.Secret{{Id: "k", Value: "run-secret-value"}},
	})
	require.NoError(t, err)
	stream, err := c.RedactStream(t.Context())
	require.NoError(t, err)
	shown := ""
	for i, scope := range []*redactorv1.Scope{run("1"), run("2"), nil} {
		require.NoError(t, stream.Send(&redactorv1.RedactStreamRequest{
			Scope: scope,
			Text:  "run-secret-value ",
			Last:  i == 2,
		}))
		resp, err := stream.Recv()
		require.NoError(t, err)
		shown += resp.GetText()
	}
	require.Equal(t, "[REDACTED:k] [REDACTED:k] [REDACTED:k] ", shown)
}

func TestRegister_TenantSecretsApplyInEveryRunOfTheTenant(t *testing.T) {
	t.Parallel()
	c := client(t, config(nil))
	_, err := c.Register(t.Context(), &redactorv1.RegisterRequest{
		Scope: &redactorv1.Scope{Tenant: "acme"}, Secrets: []*redactorv1.Secret{{Id: "t", Value: "tenant-secret"}},
	})
	require.NoError(t, err)
	for scope, want := range map[*redactorv1.Scope]string{
		run("1"):                           "[REDACTED:t]",
		{Tenant: "acme"}:                   "[REDACTED:t]",
		{Tenant: "globex"}:                 "tenant-secret",
		{Tenant: "globex", RunId: "run-1"}: "tenant-secret",
	} {
		resp, err := c.Redact(t.Context(), &redactorv1.RedactRequest{Scope: scope, Texts: []string{"tenant-secret"}})
		require.NoError(t, err)
		require.Equal(t, want, resp.GetTexts()[0])
	}
}

// An event is redacted as a whole, so it may be nested deeper than a payload.
func TestRedact_AcceptsDeepDocuments(t *testing.T) {
	t.Parallel()
	c := client(t, config(nil))
	deep := strings.Repeat(`{"a":`, 100) + `"host-secret-value"` + strings.Repeat(`}`, 100)
	resp, err := c.Redact(t.Context(), &redactorv1.RedactRequest{Scope: run("1"), Documents: [][]byte{[]byte(deep)}})
	require.NoError(t, err)
	require.Equal(t, strings.Replace(deep, "host-secret-value", "[REDACTED:host]", 1), string(resp.GetDocuments()[0]))
}

func TestClean_RedactsTheHostsSecrets(t *testing.T) {
	t.Parallel()
	s, err := redactor.New(config(nil))
	require.NoError(t, err)
	require.Equal(t, "took [REDACTED:host] and more", s.Clean("took host-secret-value and more"))
	require.Equal(t, "nothing", s.Clean("nothing"))
}

// Text that looks like a secret is held or dropped as it arrives, however long it is.
func TestRedactStream_ShowsNoPartOfALongToken(t *testing.T) {
	t.Parallel()
	c := client(t, config(nil))
	stream, err := c.RedactStream(t.Context())
	require.NoError(t, err)
	signature := strings.Repeat("s1G-", 20)
	text := "the token: eyJ" + strings.Repeat("hBc1", 10) + ".eyJ" + strings.Repeat("zdWI", 2000) + "." + signature + " expired"
	shown, count := "", int32(0)
	for rest := text; rest != ""; {
		n := min(16, len(rest))
		require.NoError(t, stream.Send(&redactorv1.RedactStreamRequest{
			Scope: run("1"),
			Text:  rest[:n],
			Last:  n == len(rest),
		}))
		resp, err := stream.Recv()
		require.NoError(t, err)
		shown, count, rest = shown+resp.GetText(), count+resp.GetCount(), rest[n:]
	}
	require.Equal(t, "the token: [REDACTED:shape.jwt] expired", shown)
	require.EqualValues(t, 1, count)
}
