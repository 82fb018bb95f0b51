package ingest_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natslink/natslinktest"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/services/eventlog/hub"
	"waybill.dev/waybill/services/eventlog/ingest"
	"waybill.dev/waybill/services/eventlog/logtest"
	"waybill.dev/waybill/services/eventlog/store/sqlite"
)

// serveNATS runs a server over a directory until stop is called. Port 0: any.
func serveNATS(t *testing.T, dir string, port int) (url string, stop func()) {
	t.Helper()
	srv := natslinktest.Serve(t, &server.Options{Port: port, JetStream: true, StoreDir: dir})
	return srv.ClientURL(), func() { srv.Shutdown(); srv.WaitForShutdown() }
}

// A NATS server restarts without its last acknowledged records, while the event log has read them
// and continues.
func TestCompare_SeesThatANATSServerHasLostItsEnd(t *testing.T) {
	t.Parallel()
	dir, earlier := t.TempDir(), t.TempDir()
	url, stop := serveNATS(t, dir, 0)
	addr, err := net.ResolveTCPAddr("tcp", url[len("nats://"):])
	require.NoError(t, err)
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(5*time.Millisecond))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	log, err := jetstream.Open(t.Context(), nc, jetstream.DefaultConfig())
	require.NoError(t, err)
	s, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(t.TempDir(), "eventlog.db")}, quiet, time.Now)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	r := &rig{store: s, ing: ingest.New(log, s, hub.New(16), 1<<20, func() {}, nil, quiet)}
	r.run(t)
	whole := func(names ...string) (writers []*logtest.Writer) {
		for _, name := range names {
			writers = append(writers, logtest.Whole(t, log, name))
		}
		require.NoError(t, r.ing.Wait(within(t), writers[len(writers)-1].Head.Pos))
		return writers
	}
	kept := whole("a", "b")
	stop()
	require.NoError(t, os.CopyFS(earlier, os.DirFS(dir)))
	_, stop = serveNATS(t, dir, addr.Port)
	whole("c", "d", "e")
	end := r.ing.Stats().Applied
	stop()
	serveNATS(t, earlier, addr.Port)

	eventually(t, func() bool { return r.ing.Compare(t.Context()) == nil && r.ing.Stats().Lost > 0 }, "the loss is seen")
	require.EqualValues(t, 6, r.ing.Stats().Lost)
	eventually(t, func() bool { return r.ing.Ready() == nil && r.ing.Stats().Applied == end-6 }, "rebuilt")
	r.same(t, append(kept, whole("f", "g", "h", "i")...)...)
	require.EqualValues(t, 1, r.ing.Stats().Rebuilds)
}
