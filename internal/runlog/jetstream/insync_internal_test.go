package jetstream

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/natslink/natslinktest"
)

// A cluster without one of its servers accepts writes, but stores them on fewer disks than
// configured.
func TestCheck_DetectsAReplicaThatIsNotInSync(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, waits until a cluster misses one of its servers: run without -short")
	}
	servers, nc := natslinktest.Cluster(t)
	cfg := DefaultConfig()
	cfg.Replicas, cfg.Patience = 3, 2*time.Second
	var (
		log *Log
		err error
	)
	require.Eventually(t, func() bool { log, err = Open(t.Context(), nc, cfg); return err == nil }, 30*time.Second, 50*time.Millisecond)
	cfg.InSync = 3
	strict := &Log{cfg: cfg, link: log.link, js: log.js, stream: log.stream}
	require.Eventually(t, func() bool { return strict.Check(t.Context()) == nil }, 30*time.Second, 20*time.Millisecond)

	info, err := log.stream.Info(t.Context())
	require.NoError(t, err)
	for _, s := range servers {
		if s.Name() == info.Cluster.Replicas[0].Name {
			s.Shutdown()
			s.WaitForShutdown()
		}
	}
	require.Eventually(t, func() bool { // the connection may have been to the server that is gone
		err := strict.Check(t.Context())
		return err != nil && strings.Contains(err.Error(), "2 of 3 copies are in sync, want 3") && log.Check(t.Context()) == nil
	}, 60*time.Second, 50*time.Millisecond)
}
