package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// keeping is the workflow copying under another id, with a setting.
func keeping(id, retention string) string {
	doc := strings.Replace(copying, `"id":"copying"`, fmt.Sprintf(`"id":%q`, id), 1)
	return strings.Replace(doc, `"settings":{}`, fmt.Sprintf(`"settings":{"retention":%q}`, retention), 1)
}

// copiedBy is copied for another workflow.
func copiedBy(t *testing.T, c *harness.Client, workflow, text string) (runID string) {
	t.Helper()
	runID = start(t, c, fmt.Sprintf(`{"workflowId":%q,"inputs":{"text":%q},"tags":[%q]}`, workflow, text, text))
	_, err := c.Finish(within(t, 30*time.Second), runID)
	require.NoError(t, err)
	return runID
}

func statusOf(t *testing.T, c *harness.Client, runID string) int {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+runID, "")
	require.NoError(t, err)
	return a.Status
}

// expires waits until a run is gone.
func expires(t *testing.T, c *harness.Client, runID string) {
	t.Helper()
	require.Eventually(t, func() bool { return statusOf(t, c, runID) == http.StatusNotFound }, time.Minute, 50*time.Millisecond, runID)
}

func doing(t *testing.T, c *harness.Client, method, path, body string, want int) *harness.Answer {
	t.Helper()
	a, err := c.Do(t.Context(), method, path, body)
	require.NoError(t, err)
	require.Equal(t, want, a.Status, "%s %s: %s", method, path, a.Body)
	return a
}

// The most specific retention decides, a hold wins over all, and a file that changes is read again.
func TestRetention_ErasesRunsWhoseRetentionIsOver(t *testing.T) {
	t.Parallel()
	needsHost(t)
	dir := t.TempDir()
	for id, doc := range map[string]string{
		"copying": copying, "sleepy": waitingFlow, "brief": keeping("brief", "2s"), "ever": keeping("ever", "unlimited"),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, id+".json"), []byte(doc), 0o600))
	}
	limits := filepath.Join(t.TempDir(), "limits.json")
	require.NoError(t, os.WriteFile(limits, []byte(`{"tenants":{"acme":{"retention":"1h"}}}`), 0o600))
	h := harness.Start(t, "--workflows", dir, "--metrics-addr", "127.0.0.1:0", "--tenant-limits", limits, "--retention", "2s",
		"--lease", "1s", "--api-key", testKey+"=acme:*", "--api-key", "other=beta:*", "--api-key", "weak=acme:runs:read,runs:delete")
	c, other := h.Client(testKey), h.Client("other")
	secret, kept := canary("gone"), canary("kept")

	// The retention is short once the run has its hold.
	doing(t, c, http.MethodPost, "/v1/workflows", keeping("held", "1h"), http.StatusCreated)
	held := copiedBy(t, c, "held", kept)
	hold := fmt.Sprintf(`{"reason":"case %s"}`, "7")
	doing(t, h.Client("weak"), http.MethodPost, "/v1/runs/"+held+"/hold", hold, http.StatusForbidden)
	doing(t, other, http.MethodPost, "/v1/runs/"+held+"/hold", hold, http.StatusNotFound)
	doing(t, c, http.MethodPost, "/v1/runs/"+held+"/hold", `{"reason":" "}`, http.StatusBadRequest)
	doing(t, c, http.MethodPost, "/v1/runs/"+held+"/hold", hold, http.StatusOK)
	require.Equal(t, "conflict", doing(t, c, http.MethodDelete, "/v1/runs/"+held, "", http.StatusConflict).Code())
	next := strings.Replace(keeping("held", "2s"), `"version":"1"`, `"version":"2"`, 1)
	doing(t, c, http.MethodPost, "/v1/workflows", next, http.StatusCreated)

	stays := []string{copiedBy(t, c, "copying", kept), copiedBy(t, c, "ever", kept), copiedBy(t, other, "ever", kept), held}
	going := start(t, other, `{"workflowId":"sleepy"}`)
	brief, theirs := copiedBy(t, c, "brief", secret), copiedBy(t, other, "copying", secret)
	expires(t, c, brief)
	expires(t, other, theirs)
	require.Equal(t, http.StatusOK, statusOf(t, other, going), "it has not ended")
	require.Equal(t, http.StatusOK, statusOf(t, other, stays[2]))
	checkUnharmed(t, h, kept, stays[0], stays[1], stays[3])
	require.Contains(t, string(doing(t, c, http.MethodGet, "/v1/holds", "", http.StatusOK).Body), held)
	require.NotContains(t, string(doing(t, other, http.MethodGet, "/v1/holds", "", http.StatusOK).Body), held)
	report := string(doing(t, c, http.MethodGet, "/v1/retention", "", http.StatusOK).Body)
	require.Contains(t, report, `"retention":"1h0m0s"`)
	require.Contains(t, report, `"source":"workflow"`)
	require.NotContains(t, report, theirs)
	require.Contains(t, metrics(t, h), "\nwaybill_retention_expired_runs_total 2\n")

	// The host is killed and started again, and its tenant's file says less.
	h.Kill()
	require.NoError(t, os.WriteFile(limits, []byte(`{"tenants":{"acme":{"retention":"1s"}}}`), 0o600))
	h.Launch()
	c = h.Client(testKey)
	expires(t, c, stays[0])
	require.Equal(t, http.StatusOK, statusOf(t, c, stays[1]))
	require.Equal(t, http.StatusOK, statusOf(t, c, held))
	doing(t, c, http.MethodDelete, "/v1/runs/"+held+"/hold", "", http.StatusNoContent)
	doing(t, c, http.MethodDelete, "/v1/runs/"+held+"/hold", "", http.StatusNoContent)
	expires(t, c, held)
	audit := string(doing(t, c, http.MethodGet, "/v1/audit", "", http.StatusOK).Body)
	for _, action := range []string{"run.held", "run.releasing", "run.released"} {
		require.Contains(t, audit, `"`+action+`"`)
	}
	require.Zero(t, h.Stop().ExitCode())
	out, status := harness.Command(t, "log", "verify", "--data-dir", h.Dir())
	require.Zero(t, status, out)
}

func TestRetention_RejectsInvalidSettings(t *testing.T) {
	t.Parallel()
	needsHost(t)
	for _, bad := range []string{"0", "0s", "-1d", "-90h", "soon", "", "90", "36501d", "100ms"} {
		out, status := harness.Command(t, "dev", "--data-dir", t.TempDir(), "--retention", bad)
		require.NotZero(t, status, bad)
		assert.Contains(t, out, "--retention", bad)
		assert.Contains(t, out, `want days such as "90d"`, bad)
	}
	for _, bad := range []string{"0", "-1", "NaN", "20000"} {
		out, status := harness.Command(t, "dev", "--data-dir", t.TempDir(), "--retention-rate", bad)
		require.NotZero(t, status, bad)
		assert.Contains(t, out, "--retention-rate", bad)
	}
	h := erasing(t)
	a := doing(t, h.Client(testKey), http.MethodPost, "/v1/workflows", keeping("w", "0d"), http.StatusBadRequest)
	require.Contains(t, string(a.Body), "/settings/retention")
}

// Runs are erased in bulk by the filter of the list of runs. A dry run only counts.
func TestErase_ByFilter(t *testing.T) {
	t.Parallel()
	h := erasing(t)
	c := h.Client(testKey)
	secret, kept := canary("gone"), canary("kept")
	var victims []string
	for range 3 {
		victims = append(victims, copied(t, c, secret))
	}
	stays := copied(t, c, kept)
	going := start(t, c, `{"workflowId":"sleepy","tags":["`+secret+`"]}`)
	doing(t, c, http.MethodPost, "/v1/runs/"+victims[0]+"/hold", `{"reason":"case 7"}`, http.StatusOK)

	for body, want := range map[string]int{
		`{}`: http.StatusBadRequest, `{"dryRun":true}`: http.StatusBadRequest, `{"all":true,"filter":"tag:x"}`: http.StatusBadRequest,
		`{"filter":"status:running"}`: http.StatusBadRequest, `{"filter":"color:red"}`: http.StatusBadRequest,
		`{"endedBefore":"yesterday"}`: http.StatusBadRequest, `{"all":true,"limit":0}`: http.StatusBadRequest,
	} {
		doing(t, c, http.MethodPost, "/v1/runs:erase", body, want)
	}
	doing(t, h.Client("weak"), http.MethodPost, "/v1/runs:erase", `{"all":true}`, http.StatusForbidden)
	var res struct {
		Erased     int
		NextCursor string
		Refused    []struct{ RunID, Error, Message string }
	}
	erase := func(body string) {
		res.Refused, res.NextCursor = nil, ""
		require.NoError(t, doing(t, c, http.MethodPost, "/v1/runs:erase", body, http.StatusOK).JSON(&res))
	}
	erase(`{"filter":"tag:` + secret + `","dryRun":true}`)
	require.Equal(t, 3, res.Erased)
	erase(`{"filter":"tag:` + secret + `","endedBefore":"2020-01-01T00:00:00Z"}`)
	require.Zero(t, res.Erased)
	erase(`{"filter":"tag:` + secret + `"}`)
	require.Equal(t, 2, res.Erased)
	require.Len(t, res.Refused, 1)
	require.Equal(t, victims[0], res.Refused[0].RunID)
	require.Equal(t, "conflict", res.Refused[0].Error)
	require.Contains(t, res.Refused[0].Message, "legal hold")
	doing(t, c, http.MethodDelete, "/v1/runs/"+victims[0]+"/hold", "", http.StatusNoContent)
	doing(t, c, http.MethodPost, "/v1/runs/"+going+"/cancel", `{}`, http.StatusOK)
	erase(`{"filter":"tag:` + secret + `","limit":1}`)
	require.Equal(t, 1, res.Erased)
	require.NotEmpty(t, res.NextCursor)
	erase(`{"filter":"tag:` + secret + `","cursor":"` + res.NextCursor + `"}`)
	require.Equal(t, 1, res.Erased)
	for _, id := range append(victims, going) {
		require.Equal(t, http.StatusNotFound, statusOf(t, c, id))
	}
	gone(t, h.Dir(), secret)
	checkUnharmed(t, h, kept, stays)
	audit := string(doing(t, c, http.MethodGet, "/v1/audit", "", http.StatusOK).Body)
	for _, id := range victims {
		require.Contains(t, audit, id)
	}
	require.NotContains(t, audit, secret)
}
