package acceptor_test

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	blobs "waybill.dev/waybill/internal/blob/memory"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog/memory"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor"
	"waybill.dev/waybill/services/acceptor/assets"
)

// An asset is kept and served as it came, so none may hold a secret (OpenWOP
// envelope contract §11, sinks).
func TestPutAsset_RefusesWhatHoldsASecret(t *testing.T) {
	t.Parallel()
	known := &redactor{secrets: map[string][]*redactorv1.Secret{"": {{Id: "k", Value: canary}}}}
	redaction, stop := serve(t, func(s *grpc.Server) { redactorv1.RegisterRedactorServer(s, known) })
	vault, err := assets.New(blobs.New(), assets.Keys{1: bytes.Repeat([]byte("k"), 32)}, func() string { return "http://h" }, time.Now)
	require.NoError(t, err)
	cfg := acceptor.DefaultConfig()
	cfg.TestSeams = true
	s, err := acceptor.New(cfg, acceptor.Deps{
		Log: memory.New(), Redactor: redactorv1.NewRedactorClient(redaction), Logger: slog.New(slog.DiscardHandler), Assets: vault, Clock: time.Now,
		Seam: kvmemory.New(),
	})
	require.NoError(t, err)
	conn, _ := serve(t, func(g *grpc.Server) { s.Register(g) })
	c := acceptorv1.NewAcceptorClient(conn)
	put := func(data, mime string) error {
		_, err := c.PutAsset(t.Context(), &acceptorv1.PutAssetRequest{Tenant: "acme", Data: []byte(data), MimeType: mime})
		return err
	}
	require.NoError(t, put("\x89PNG\r\n\x1a\n\xff\xfe\x00", "image/png"), "what is no text is no secret")
	for _, err := range []error{put("a "+canary, "text/plain"), put("\xff\xfe"+canary+"\xff", "image/png"), put("a", "text/plain; x="+canary)} {
		require.Equal(t, fault.ValidationError, fault.CodeOf(err), "%v", err)
		require.NotContains(t, err.Error(), canary)
	}
	stop()
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(put("a", "text/plain")), "nothing is kept without the redactor")
}
