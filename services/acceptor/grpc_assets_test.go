package acceptor_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	blobs "waybill.dev/waybill/internal/blob/memory"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/internal/token"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	runlogv1 "waybill.dev/waybill/proto/gen/go/waybill/runlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/acceptor"
	"waybill.dev/waybill/services/acceptor/accept"
	"waybill.dev/waybill/services/acceptor/assets"
)

// keeper starts an acceptor with an asset store, and a redactor without secrets.
func keeper(t *testing.T, seams bool, now *time.Time) acceptorv1.AcceptorClient {
	t.Helper()
	c, _ := keeperWith(t, seams, now, &redactor{secrets: map[string][]*redactorv1.Secret{}})
	return c
}

// keeperWith is keeper with the given redactor; stop stops the redactor.
func keeperWith(t *testing.T, seams bool, now *time.Time, r *redactor) (c acceptorv1.AcceptorClient, stop func()) {
	t.Helper()
	clock := func() time.Time { return *now }
	vault, err := assets.New(blobs.New(), token.Keys{1: bytes.Repeat([]byte("k"), 32)}, func() string { return "https://host.example/v1/assets" }, clock)
	require.NoError(t, err)
	cfg := acceptor.DefaultConfig()
	cfg.TestSeams, cfg.MaxMediaBytes = seams, 64
	redaction, stop := serve(t, func(s *grpc.Server) { redactorv1.RegisterRedactorServer(s, r) })
	s, err := acceptor.New(cfg, acceptor.Deps{
		Log:      memory.New(),
		Redactor: redactorv1.NewRedactorClient(redaction),
		Assets:   vault,
		Seam:     kvmemory.New(),
		Clock:    clock,
	})
	require.NoError(t, err)
	conn, _ := serve(t, func(g *grpc.Server) { s.Register(g) })
	return acceptorv1.NewAcceptorClient(conn), stop
}

// OpenWOP envelope contract §17: unknown, expired, changed and foreign tokens are
// not found.
func TestGetAsset_FindsByItsOwnTokenOnly(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	c := keeper(t, true, &now)
	put := func(tenant, data string, ttl int64) string {
		res, err := c.PutAsset(t.Context(), &acceptorv1.PutAssetRequest{
			Tenant:     tenant,
			Data:       []byte(data),
			MimeType:   "text/plain",
			TtlSeconds: ttl,
		})
		require.NoError(t, err)
		return res.GetToken()
	}
	acme, beta, short := put("acme", "of acme", 0), put("beta", "of beta", 0), put("acme", "for a minute", 60)
	for token, want := range map[string]string{acme: "of acme", beta: "of beta", short: "for a minute"} {
		res, err := c.GetAsset(t.Context(), &acceptorv1.GetAssetRequest{Token: token})
		require.NoError(t, err)
		require.Equal(t, want, string(res.GetData()))
		require.Equal(t, "text/plain", res.GetMimeType())
	}

	now = now.Add(time.Minute)
	claim, mac, _ := strings.Cut(acme, ".")
	betaClaim, betaMAC, _ := strings.Cut(beta, ".")
	raw, err := base64.RawURLEncoding.DecodeString(claim)
	require.NoError(t, err)
	moved := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(raw), "acme", "beta", 1)))
	for name, token := range map[string]string{
		"expired":                short,
		"another tenant's claim": moved + "." + mac,
		"two tokens in one":      claim + "." + betaMAC,
		"the other way":          betaClaim + "." + mac,
		"unknown":                "x.y",
		"empty":                  "",
		"unsigned":               claim + ".",
		"a letter more":          acme + "A",
		"in capitals":            strings.ToUpper(acme),
	} {
		_, err := c.GetAsset(t.Context(), &acceptorv1.GetAssetRequest{Token: token})
		require.Equal(t, fault.NotFound, fault.CodeOf(err), name)
		require.NotContains(t, err.Error(), "acme", "it does not say whose")
	}
}

func TestPutAsset_NeedsTestSeamsAndHasALimit(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	_, err := keeper(t, false, &now).PutAsset(t.Context(), &acceptorv1.PutAssetRequest{Tenant: "acme", Data: []byte("x")})
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	c := keeper(t, true, &now)
	_, err = c.PutAsset(t.Context(), &acceptorv1.PutAssetRequest{Tenant: "acme", Data: make([]byte, 48)})
	require.NoError(t, err)
	_, err = c.PutAsset(t.Context(), &acceptorv1.PutAssetRequest{Tenant: "acme", Data: make([]byte, 49)})
	require.Equal(t, fault.PayloadTooLarge, fault.CodeOf(err))
	require.ErrorContains(t, err, "has 68 characters of base64, the limit is 64")
}

// An asset is stored and served unchanged, so it must not contain a secret (OpenWOP
// envelope contract §11, sinks).
func TestPutAsset_RefusesAssetsWithSecrets(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	c, stop := keeperWith(t, true, &now, &redactor{secrets: map[string][]*redactorv1.Secret{"": {{Id: "k", Value: canary}}}})
	put := func(data, mime string) error {
		_, err := c.PutAsset(t.Context(), &acceptorv1.PutAssetRequest{Tenant: "acme", Data: []byte(data), MimeType: mime})
		return err
	}
	require.NoError(t, put("\x89PNG\r\n\x1a\n\xff\xfe\x00", "image/png"), "what is no text is no secret")
	for _, err := range []error{
		put("a "+canary, "text/plain"),
		put("\xff\xfe"+canary+"\xff", "image/png"),
		put("a", "text/plain; x="+canary),
	} {
		require.Equal(t, fault.ValidationError, fault.CodeOf(err), "%v", err)
		require.NotContains(t, err.Error(), canary)
	}
	stop()
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(put("a", "text/plain")), "nothing is kept without the redactor")
}

// OpenWOP envelope contract §17: a run reads the assets of its tenant, of its own and of runs that are
// related to it. Other URLs are not requested, and other assets do not exist for it.
func TestLoadAsset_FindsTheAssetsOfTheRunsFamily(t *testing.T) {
	t.Parallel()
	log := memory.New()
	for id, more := range map[string]string{
		"r": "", "fork": `,"fork":{"sourceRunId":"r"}`, "child": `,"parent":{"runId":"fork"}`, "grandchild": `,"parent":{"runId":"child"}`,
		"other": "", "orphan": `,"fork":{"sourceRunId":"gone"}`,
	} {
		run := subject.Run{Tenant: "acme", WorkflowID: "w", RunID: id}
		_, err := log.Append(t.Context(), frame.NewStart(run, []byte(`{"runId":"`+id+`","workflowId":"w","owner":{"tenant":"acme"}`+more+`}`)), 0)
		require.NoError(t, err)
	}
	vault, err := assets.New(blobs.New(), token.Keys{1: bytes.Repeat([]byte("k"), 32)}, func() string { return "https://host.example/v1/assets" }, time.Now)
	require.NoError(t, err)
	redaction, _ := serve(t, func(s *grpc.Server) {
		redactorv1.RegisterRedactorServer(s, &redactor{secrets: map[string][]*redactorv1.Secret{}})
	})
	s, err := acceptor.New(acceptor.DefaultConfig(), acceptor.Deps{Log: log, Redactor: redactorv1.NewRedactorClient(redaction), Assets: vault})
	require.NoError(t, err)
	conn, _ := serve(t, func(g *grpc.Server) { s.Register(g) })
	c := acceptorv1.NewAcceptorClient(conn)
	url, err := vault.Save(t.Context(), accept.Target{Run: subject.Run{Tenant: "acme", RunID: "r"}}, "c", accept.Asset{Data: []byte("lamp"), MimeType: "image/png"})
	require.NoError(t, err)
	load := func(tenant, run, url string) (*acceptorv1.LoadAssetResponse, error) {
		return c.LoadAsset(t.Context(), &acceptorv1.LoadAssetRequest{Run: &runlogv1.RunRef{Tenant: tenant, WorkflowId: "w", RunId: run}, Url: url})
	}
	for _, run := range []string{"r", "fork", "child", "grandchild"} {
		res, err := load("acme", run, url)
		require.NoError(t, err, run)
		require.Equal(t, "lamp", string(res.GetAsset().GetData()))
		require.Equal(t, "image/png", res.GetAsset().GetMimeType())
	}
	res, err := load("acme", "r", strings.Replace(url, "https://host.example", "http://127.0.0.1:8080", 1))
	require.NoError(t, err)
	require.NotNil(t, res.GetAsset(), "the token identifies the host, under any name")
	for _, at := range [][2]string{{"acme", "other"}, {"acme", "orphan"}, {"acme", "unknown"}, {"beta", "r"}} {
		_, err := load(at[0], at[1], url)
		require.Equal(t, fault.NotFound, fault.CodeOf(err), at)
	}
	_, err = load("acme", "r", url+"x")
	require.Equal(t, fault.NotFound, fault.CodeOf(err))
	for _, foreign := range []string{"https://evil.example/v1/assets/a.b", "data:text/plain,x", "", "://", "https://evil.example/"} {
		res, err := load("acme", "r", foreign)
		require.NoError(t, err, foreign)
		require.Nil(t, res.GetAsset(), foreign)
	}
}
