package jetkv_test

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/jetkv"
	"waybill.dev/waybill/internal/kv/kvtest"
	"waybill.dev/waybill/internal/natsd"
)

func TestStore_KeepsThePortsContract(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]jetkv.Config{
		"on disk": {Bucket: "test", Replicas: 1}, "in memory": {Bucket: "test", Replicas: 1, InMemory: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kvtest.Run(t, func(t *testing.T) kv.Store {
				t.Helper()
				return open(t, cfg)
			})
		})
	}
}

func open(t *testing.T, cfg jetkv.Config) *jetkv.Store {
	t.Helper()
	srv, err := natsd.Start(natsd.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, "secret")
	require.NoError(t, err)
	t.Cleanup(srv.Stop)
	nc, err := srv.Connect("test")
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	s, err := jetkv.Open(t.Context(), nc, cfg)
	require.NoError(t, err)
	return s
}
