package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

var released = regexp.MustCompile(`(?m)^waybill_cold_removed_runs_total\{how="released"\} (\S+)$`)

// Frames of a large log are not overwritten one by one. The host is killed while they leave the log: no
// answer changes, and an erased run is gone.
func TestSeal_ReleasesFramesOfALargeLog(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, writes 20 MB: run without -short")
	}
	h := harness.StartWith(t, harness.Options{
		Args: sealing(t, "--hot-window", "1s", "--test-seams"), Env: []string{"OPENWOP_TEST_NEVER_OVERWRITE=true"},
	})
	const runs, kills = 30, 3
	want := map[string]string{}
	var ids []string
	answer := func(id string) string {
		t.Helper()
		a, err := h.Client(testKey).Do(t.Context(), http.MethodGet, "/v1/runs/"+id+"/events/poll", "")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
		return string(a.Body)
	}
	text := strings.Repeat("large ", 40_000)
	total := 0
	count := func() int {
		m := released.FindStringSubmatch(metrics(t, h))
		if m == nil {
			return 0
		}
		n, err := strconv.ParseFloat(m[1], 64)
		require.NoError(t, err)
		return int(n)
	}
	for i := range runs {
		id := start(t, h.Client(testKey), fmt.Sprintf(`{"workflowId":"copying","inputs":{"text":"%d %s"}}`, i, text))
		_, err := h.Client(testKey).Finish(within(t, 30*time.Second), id)
		require.NoError(t, err)
		ids = append(ids, id)
		want[id] = answer(id)
		if i%(runs/kills) == runs/kills-1 {
			total += count()
			h.Kill()
			h.Launch()
			for id, before := range want {
				require.Equal(t, before, answer(id))
			}
		}
	}
	require.Eventually(t, func() bool { return total+count() > 0 }, time.Minute, 50*time.Millisecond, "some are released")
	require.Equal(t, http.StatusNoContent, remove(t, h.Client(testKey), ids[0]).Status)
	require.Equal(t, http.StatusNotFound, statusOf(t, h.Client(testKey), ids[0]))
	for _, id := range ids[1:] {
		require.Equal(t, want[id], answer(id))
	}
	require.Zero(t, h.Stop().ExitCode())
	out, status := harness.Command(t, "log", "verify", "--data-dir", h.Dir())
	require.Zero(t, status, out)
}
