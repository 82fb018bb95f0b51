package jetblob_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/blob"
	"waybill.dev/waybill/internal/blob/blobtest"
	"waybill.dev/waybill/internal/blob/jetblob"
	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/natslink/natslinktest"
)

func TestStore_FulfilsTheContract(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) blob.Store {
		t.Helper()
		srv, err := natsd.Start(t.Context(), natsd.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
		require.NoError(t, err)
		t.Cleanup(srv.Stop)
		nc, err := srv.Connect("test")
		require.NoError(t, err)
		t.Cleanup(nc.Close)
		s, err := jetblob.Open(t.Context(), nc, jetblob.Config{Bucket: "test", Replicas: 1})
		require.NoError(t, err)
		return s
	})
}

func TestStore_RepeatsRequestsLostWithTheirConnection(t *testing.T) {
	t.Parallel()
	b := blob.Blob{Data: bytes.Repeat([]byte("x"), 300<<10), Meta: map[string]string{"a": "b"}} // of several parts
	for name, ask := range map[string]func(context.Context, *jetblob.Store) error{
		"put": func(ctx context.Context, s *jetblob.Store) error { return s.Put(ctx, "new", b) },
		"get": func(ctx context.Context, s *jetblob.Store) error {
			got, err := s.Get(ctx, "there")
			if err == nil && !bytes.Equal(got.Data, b.Data) {
				return errors.New("not what was stored")
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := natslinktest.Start(t)
			s, err := jetblob.Open(t.Context(), srv.Conn, jetblob.Config{Bucket: "test", Replicas: 1})
			require.NoError(t, err)
			require.NoError(t, s.Put(t.Context(), "there", b))
			require.NoError(t, srv.Under(t, func(ctx context.Context) error { return ask(ctx, s) }, nil))
		})
	}
}
