package natsmon_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natslink/natslinktest"
	"waybill.dev/waybill/internal/natsmon"
)

// monitored starts a server, and gives the URL of its monitoring.
func monitored(t *testing.T, jetStream, always bool) string {
	t.Helper()
	s := natslinktest.Serve(t, &server.Options{
		HTTPHost: "127.0.0.1", HTTPPort: server.RANDOM_PORT, JetStream: jetStream, StoreDir: t.TempDir(), SyncAlways: always,
	})
	return "http://" + s.MonitorAddr().String()
}

func TestCheck_FindsAServerThatDoesNotSyncEveryWrite(t *testing.T) {
	t.Parallel()
	always, lazy, none := monitored(t, true, true), monitored(t, true, false), monitored(t, false, false)
	for name, tc := range map[string]struct {
		urls []string
		lazy bool
	}{
		"all sync":                     {[]string{always, always + "/"}, false},
		"one does not":                 {[]string{always, lazy}, true},
		"one keeps nothing":            {[]string{none, always}, false},
		"one that is lazy comes first": {[]string{lazy, always}, true},
	} {
		err := natsmon.New(tc.urls, slog.New(slog.DiscardHandler)).Check(t.Context())
		if !tc.lazy {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, natsmon.ErrLazy, name)
		require.ErrorContains(t, err, "sync_interval: always", name)
	}
}

func TestCheck_LogsUnreadableServers(t *testing.T) {
	t.Parallel()
	strange := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	t.Cleanup(strange.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(gone.Close)
	var lines bytes.Buffer
	m := natsmon.New([]string{strange.URL, gone.URL, "http://127.0.0.1:1"}, slog.New(slog.NewTextHandler(&lines, nil)))
	require.NoError(t, m.Check(t.Context()), "whether a server is there, its clients see")
	require.NoError(t, m.Check(t.Context()))
	require.Equal(t, 1, bytes.Count(lines.Bytes(), []byte("cannot be seen")), "%s", lines.String())
	require.Contains(t, lines.String(), "status 404")
	require.Contains(t, lines.String(), "refused")
}
