package jetblob_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/blob"
	"waybill.dev/waybill/internal/blob/blobtest"
	"waybill.dev/waybill/internal/blob/jetblob"
	"waybill.dev/waybill/internal/natsd"
)

func TestStore_FulfilsTheContract(t *testing.T) {
	t.Parallel()
	blobtest.Run(t, func(t *testing.T) blob.Store {
		t.Helper()
		srv, err := natsd.Start(natsd.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
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
