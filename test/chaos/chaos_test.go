// Package chaos kills the host repeatedly during work and compares the result with an external
// journal of everything it acknowledged.
package chaos

import (
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/chaos/journal"
	"waybill.dev/waybill/test/harness"
)

// defaultKills applies to `go test`; CI and `make faults ONLY=kills` set CHAOS_KILLS.
const defaultKills = 10

func kills(t *testing.T) int {
	t.Helper()
	v := os.Getenv("CHAOS_KILLS")
	if v == "" {
		return defaultKills
	}
	n, err := strconv.Atoi(v)
	require.NoError(t, err)
	return n
}

func TestKill_LosesNothingAcknowledgedAndDoublesNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, kills real processes: run without -short")
	}
	// Half of the kills meet a host that moves runs to its cold store a second after their end.
	for name, args := range map[string][]string{"hot": nil, "sealing": {"--hot-window", "1s"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			killed(t, (kills(t)+1)/2, append(args, "--lease", "1s")...)
		})
	}
}

func killed(t *testing.T, times int, args ...string) {
	t.Helper()
	r := harness.Seed(t)
	host := harness.Start(t, args...)
	journal.Deploy(t, host)
	j := journal.New()
	for i := range times {
		stop := j.Load(t, host, 4, 1)
		wait(t, time.Duration(20+r.IntN(380))*time.Millisecond)
		host.Kill()
		stop()
		if i%10 == 9 { // sometimes the read model is damaged, too
			damage(t, filepath.Join(host.Dir(), "waybill.db"), r)
		}
		host.Launch()
	}
	j.Check(t, host)
}

// wait lets the host work for a random time: the moment of the kill is what is tested.
func wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// damage overwrites part of a file with noise.
func damage(t *testing.T, file string, r *rand.Rand) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	st, err := f.Stat()
	require.NoError(t, err)
	noise := make([]byte, 4096)
	for i := range noise {
		noise[i] = byte(r.IntN(256))
	}
	_, err = f.WriteAt(noise, r.Int64N(max(st.Size()-4096, 1)))
	require.NoError(t, err)
}

func TestFullDisk_RefusesHonestlyAndLosesNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, fills a file system: run without -short")
	}
	for name, afterwards := range map[string]func(host *harness.Host){
		"and is started again":     func(host *harness.Host) { host.Kill(); host.Launch() },
		"and recovers when let be": func(*harness.Host) {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fullDisk(t, afterwards)
		})
	}
}

func fullDisk(t *testing.T, afterwards func(host *harness.Host)) {
	t.Helper()
	dir := t.TempDir()
	mountSmall(t, dir, "size=24m")
	host := harness.StartIn(t, dir)
	journal.Deploy(t, host)
	c := host.Client("dev-key")
	filler := filepath.Join(dir, "filler")
	first := create(t, c, `{"workflowId":"chaos-one"}`)
	require.Equal(t, http.StatusCreated, first.Status)
	fill(t, filler)
	refused := false
	var acknowledged []string
	for range 200 {
		a := create(t, c, `{"workflowId":"chaos-one","inputs":{"pad":"`+strings.Repeat("x", 20_000)+`"}}`)
		if a.Status == http.StatusCreated {
			acknowledged = append(acknowledged, runID(t, a))
			continue
		}
		require.Equal(t, http.StatusServiceUnavailable, a.Status, "%s", a.Body)
		require.Equal(t, "service_unavailable", a.Code())
		require.NotEmpty(t, a.Header.Get("Retry-After"))
		refused = true
		break
	}
	require.True(t, refused, "a full disk refuses")
	require.NoError(t, os.Remove(filler))
	afterwards(host)
	c = host.Client("dev-key")
	require.Eventually(t, func() bool {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs", `{"workflowId":"chaos-one"}`)
		return err == nil && a.Status == http.StatusCreated
	}, time.Minute, 100*time.Millisecond, "it goes on once there is space")
	for _, id := range append(acknowledged, runID(t, first)) {
		events, err := c.Finish(t.Context(), id)
		require.NoError(t, err)
		journal.CheckLog(t, id, "chaos-one", events)
	}
}
