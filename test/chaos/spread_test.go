package chaos

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// Of a host in several processes any may die at any time, NATS as well: what was
// acknowledged is there, once, and goes on.
func TestKillOne_LosesNothingAcknowledgedAndDoublesNothing(t *testing.T) {
	if os.Getenv("WAYBILL") == "" {
		t.Skip("the host is one process; `make spread` runs it as several")
	}
	r := seed(t)
	host := harness.Start(t, "--lease", "1s")
	deploy(t, host)
	j := &journal{runs: map[string]string{}, keyed: map[string]string{}}
	pending := make(chan string, 1024)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() { load(ctx, t, host, j, w, pending) })
	}
	killed := map[string]int{}
	for range kills(t) {
		wait(t, time.Duration(20+r.IntN(380))*time.Millisecond)
		files, err := filepath.Glob(filepath.Join(host.Dir(), "*.pid"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		file := files[r.IntN(len(files))]
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		pid, err := strconv.Atoi(string(text))
		require.NoError(t, err)
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may just have ended
		killed[strings.TrimRight(filepath.Base(file), "012.pid")]++
	}
	cancel()
	wg.Wait()
	t.Logf("killed %v", killed)
	c := host.Client("dev-key")
	require.Eventually(t, func() bool { // all that were killed are back
		for range 10 { // of both gateways
			if a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs", ""); err != nil || a.Status != http.StatusOK {
				return false
			}
		}
		return true
	}, time.Minute, 200*time.Millisecond)
	check(t, host, j)
}
