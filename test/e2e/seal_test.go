package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// sealing has the arguments of a host on which runs are sealed a second after their end.
func sealing(t *testing.T, more ...string) []string {
	t.Helper()
	needsHost(t)
	dir := t.TempDir()
	for id, doc := range map[string]string{"copying": copying, "sleepy": waitingFlow} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, id+".json"), []byte(doc), 0o600))
	}
	return append([]string{
		"--workflows", dir, "--lease", "1s", "--metrics-addr", "127.0.0.1:0", "--api-key", testKey + "=acme:*", "--api-key", "other=beta:*",
	}, more...)
}

var coldRuns = regexp.MustCompile(`(?m)^waybill_cold_runs (\S+)$`)

// sealed waits until the cold store has so many runs, and no frame of them is in the log.
func sealed(t *testing.T, h *harness.Host, runs int) {
	t.Helper()
	done := regexp.MustCompile(`(?m)^waybill_cold_pending_runs 0$`)
	require.Eventually(t, func() bool {
		text := metrics(t, h)
		m := coldRuns.FindStringSubmatch(text)
		if m == nil || !done.MatchString(text) {
			return false
		}
		n, err := strconv.ParseFloat(m[1], 64)
		return err == nil && int(n) == runs
	}, time.Minute, 50*time.Millisecond, "%d runs are sealed", runs)
}

var generated = regexp.MustCompile(`"generatedAt":"[^"]*"`)

// reading returns the answers of everything that can be read of runs, by path.
func reading(t *testing.T, h *harness.Host, runs ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	get := func(path string, headers ...string) {
		a, err := h.Client(testKey).Do(t.Context(), http.MethodGet, path, "", headers...)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, "%s: %s", path, a.Body)
		out[path+strings.Join(headers, " ")] = generated.ReplaceAllString(string(a.Body), "")
		theirs, err := h.Client("other").Do(t.Context(), http.MethodGet, path, "", headers...)
		require.NoError(t, err)
		if strings.Contains(path, "/v1/runs/") {
			require.Equal(t, http.StatusNotFound, theirs.Status, path)
		}
	}
	for i, id := range runs {
		at := "/v1/runs/" + id
		for _, path := range []string{
			"", "/events/poll", "/events/poll?lastSequence=0", "/events/poll?limit=2", "/annotations", "/debug-bundle", ":view",
			":diff?against=" + runs[(i+1)%len(runs)], "/events", "/events?streamMode=debug", "/events?streamMode=values",
		} {
			get(at + path)
		}
		get(at+"/events", "Last-Event-ID", "0")
	}
	get("/v1/runs")
	return out
}

// Everything that is read of a run is the same before and after it was sealed: after a kill, with a read
// model that is filled again, and on a host that seals no more.
func TestSeal_ChangesNoAnswer(t *testing.T) {
	t.Parallel()
	args, dir := sealing(t), t.TempDir()
	h := harness.StartIn(t, dir, args...)
	c := h.Client(testKey)
	text := canary("copied")
	long := start(t, c, fmt.Sprintf(`{"workflowId":"copying","inputs":{"text":%q}}`, strings.Repeat("long ", 20_000)))
	_, err := c.Finish(within(t, 30*time.Second), long)
	require.NoError(t, err)
	runs := []string{copied(t, c, text), long}
	keyedRun, err := keyed(t.Context(), c, "key-1", "keyed")
	require.NoError(t, err)
	_, err = c.Finish(within(t, 30*time.Second), keyedRun)
	require.NoError(t, err)
	model := start(t, c, `{"workflowId":"triage","inputs":{"mail":"I was charged twice."}}`)
	_, err = c.Finish(within(t, 30*time.Second), model)
	require.NoError(t, err)
	failed := start(t, c, `{"workflowId":"sleepy"}`)
	doing(t, c, http.MethodPost, "/v1/runs/"+failed+"/cancel", `{}`, http.StatusOK)
	runs = append(runs, keyedRun, model, failed)
	doing(t, c, http.MethodPost, "/v1/runs/"+runs[0]+"/annotations", `{"signal":{"kind":"label","label":"before"}}`, http.StatusCreated)
	want := reading(t, h, runs...)
	require.Zero(t, h.Stop().ExitCode())
	require.NoFileExists(t, filepath.Join(h.Dir(), "cold.db"), "without the flag there is no cold store")

	h = harness.StartIn(t, dir, append(args, "--hot-window", "1s")...)
	sealed(t, h, len(runs))
	require.Equal(t, want, reading(t, h, runs...))
	h.Kill()
	h.Launch()
	require.Equal(t, want, reading(t, h, runs...))
	require.Zero(t, h.Stop().ExitCode())
	models, err := filepath.Glob(filepath.Join(h.Dir(), "waybill.db*"))
	require.NoError(t, err)
	for _, f := range models {
		require.NoError(t, os.Remove(f))
	}
	h.Launch()
	require.Equal(t, want, reading(t, h, runs...))
	checkUnharmed(t, h, text, runs[0])

	// A sealed run is used like any other.
	c = h.Client(testKey)
	again, err := keyed(t.Context(), c, "key-1", "keyed")
	require.NoError(t, err)
	require.Equal(t, keyedRun, again, "a repeated request creates no second run")
	doing(t, c, http.MethodPost, "/v1/runs/"+runs[1]+"/annotations", `{"signal":{"kind":"label","label":"after"}}`, http.StatusCreated)
	require.Equal(t, "run_terminal", doing(t, c, http.MethodPost, "/v1/runs/"+runs[0]+":pause", `{}`, http.StatusConflict).Code())
	forks := 0
	for _, body := range []string{`{"mode":"branch","fromSeq":2}`, `{"mode":"replay","fromSeq":0}`} {
		for _, source := range []string{runs[0], model} {
			var fork struct{ RunID string }
			require.NoError(t, doing(t, c, http.MethodPost, "/v1/runs/"+source+":fork", body, http.StatusCreated).JSON(&fork))
			_, err := c.Finish(within(t, 30*time.Second), fork.RunID)
			require.NoError(t, err)
			var snapshot struct{ Status string }
			require.NoError(t, doing(t, c, http.MethodGet, "/v1/runs/"+fork.RunID, "", http.StatusOK).JSON(&snapshot))
			require.Equal(t, "completed", snapshot.Status, body)
			forks++
		}
	}
	sealed(t, h, len(runs)+forks)
	require.Zero(t, h.Stop().ExitCode())
	out, status := harness.Command(t, "log", "verify", "--data-dir", h.Dir(), "-o", "json")
	require.Zero(t, status, out)
	require.Contains(t, out, fmt.Sprintf(`"sealedRuns": %d`, len(runs)+forks))

	h = harness.StartIn(t, dir, args...)
	for id, answer := range reading(t, h, runs[0], model) {
		if !strings.HasPrefix(id, "/v1/runs?") && id != "/v1/runs" && !strings.Contains(id, ":diff") {
			require.Equal(t, want[id], answer, id)
		}
	}
}

// A sealed run is erased like any other, also by its retention, and after kills.
func TestSeal_ErasedRunsAreGone(t *testing.T) {
	t.Parallel()
	h := harness.Start(t, sealing(t, "--hot-window", "1s")...)
	c := h.Client(testKey)
	secret, kept := canary("gone"), canary("kept")
	stays := copied(t, c, kept)
	erased := []string{copied(t, c, secret), copied(t, c, secret), copied(t, c, secret)}
	after := copied(t, c, kept)
	sealed(t, h, 5)
	require.Equal(t, http.StatusNoContent, remove(t, c, erased[0]).Status)
	require.Equal(t, http.StatusNoContent, remove(t, c, erased[1]).Status)
	h.Kill()
	h.Launch()
	c = h.Client(testKey)
	require.Equal(t, http.StatusNoContent, remove(t, c, erased[2]).Status)
	gone(t, h.Dir(), secret)
	sealed(t, h, 2)
	for _, id := range erased {
		require.Equal(t, http.StatusNotFound, statusOf(t, c, id))
		require.Equal(t, http.StatusNoContent, remove(t, c, id).Status)
	}
	checkUnharmed(t, h, kept, stays, after)
	a := doing(t, c, http.MethodGet, "/v1/runs?tag="+secret, "", http.StatusOK)
	require.NotContains(t, string(a.Body), secret)
	require.Zero(t, h.Stop().ExitCode())
	out, status := harness.Command(t, "log", "verify", "--data-dir", h.Dir())
	require.Zero(t, status, out)
	h.Launch()
	checkUnharmed(t, h, kept, stays, after)
	require.Empty(t, files(t, h.Dir(), secret))
}

func TestSeal_RetentionReachesSealedRuns(t *testing.T) {
	t.Parallel()
	h := harness.Start(t, sealing(t, "--hot-window", "1s", "--retention", "8s")...)
	c := h.Client(testKey)
	held := copied(t, c, "held")
	doing(t, c, http.MethodPost, "/v1/runs/"+held+"/hold", `{"reason":"case 7"}`, http.StatusOK)
	runID := copied(t, c, "expires")
	sealed(t, h, 2)
	expires(t, c, runID)
	sealed(t, h, 1)
	require.Equal(t, http.StatusOK, statusOf(t, c, held), "a hold wins")
	require.Equal(t, http.StatusConflict, remove(t, c, held).Status)
}

// Deliveries that wait when a run is sealed are read from the cold store.
func TestSeal_WebhooksGetEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	args := sealing(t, "--hot-window", "1s", "--test-seams", "--webhook-max-pause", "5s")
	h := harness.StartWith(t, harness.Options{Args: args, Env: []string{allowPrivate}, Dir: dir})
	in := &inbox{status: http.StatusServiceUnavailable}
	to := httptest.NewServer(in)
	t.Cleanup(to.Close)
	c := h.Client(testKey)
	doing(t, c, http.MethodPost, "/v1/webhooks", fmt.Sprintf(`{"url":%q,"events":["run.started","node.completed","run.completed"]}`, to.URL), http.StatusCreated)
	want := map[string][]int{}
	for range 3 {
		id := start(t, c, `{"workflowId":"copying","inputs":{"text":"x"}}`)
		events, err := c.Finish(within(t, 30*time.Second), id)
		require.NoError(t, err)
		for _, e := range events {
			if e.Type == "run.started" || e.Type == "node.completed" || e.Type == "run.completed" {
				want[id] = append(want[id], e.Sequence)
			}
		}
	}
	sealed(t, h, 3)
	in.answer(http.StatusNoContent)
	require.Eventually(t, func() bool { return len(flat(in.taken(t))) >= len(flat(want)) }, 2*time.Minute, 50*time.Millisecond)
	require.Equal(t, want, in.taken(t), "each once, in order")
}

// A backup that is written while runs are sealed has them all, and a restored host reads them.
func TestSeal_BackupHasSealedRuns(t *testing.T) {
	t.Parallel()
	args := sealing(t, "--hot-window", "1s")
	h := harness.Start(t, args...)
	var journal acknowledged
	stop := journal.load(t, h, 2)
	journal.atLeast(t, 60)
	require.Eventually(t, func() bool { m := coldRuns.FindStringSubmatch(metrics(t, h)); return m != nil && m[1] != "0" }, time.Minute, 10*time.Millisecond)
	before := journal.copy()
	file := filepath.Join(t.TempDir(), "backup.tar")
	out, status := harness.Command(t, "backup", file, "--data-dir", h.Dir())
	require.Zero(t, status, out)
	stop()
	h.Kill()
	r := restored(t, file, args...)
	c := r.Client(testKey)
	for key, id := range before {
		events, err := c.Finish(within(t, 30*time.Second), id)
		require.NoError(t, err, key)
		require.NotEmpty(t, events)
		again, err := keyed(t.Context(), c, key, key)
		require.NoError(t, err)
		require.Equal(t, id, again, "a repeated request creates no second run")
	}
	require.NotContains(t, r.Log(), "will be rebuilt")
	require.Zero(t, r.Stop().ExitCode())
	out, status = harness.Command(t, "log", "verify", "--data-dir", r.Dir())
	require.Zero(t, status, out)
}

// A cold store is lost. Its runs are reported, all others are served, and no run is sealed into another
// file: the restored one has everything, and an erasure of a run in it is carried out then.
func TestSeal_LostColdStore(t *testing.T) {
	t.Parallel()
	args := sealing(t, "--hot-window", "1s")
	h := harness.Start(t, args...)
	c := h.Client(testKey)
	secret := canary("erased while it is lost")
	runID, erased := copied(t, c, "sealed"), copied(t, c, secret)
	sealed(t, h, 2)
	require.Zero(t, h.Stop().ExitCode())
	lost := moveAway(t, h.Dir())
	out, status := harness.Command(t, "log", "verify", "--data-dir", h.Dir())
	require.Contains(t, out, "2 sealed runs were not read", "%d", status)
	for range 2 {
		h.Launch()
		h.AwaitLog("the cold store lacks sealed runs", "--give-up-lost-runs")
		c = h.Client(testKey)
		damagedRun(t, c, runID)
		copied(t, c, "others are served")
		h.Kill()
	}
	models, err := filepath.Glob(filepath.Join(h.Dir(), "waybill.db*"))
	require.NoError(t, err)
	for _, f := range models { // a read model that is filled now notes the runs as damaged
		require.NoError(t, os.Remove(f))
	}
	h.Launch()
	c = h.Client(testKey)
	damagedRun(t, c, runID)
	kept := copied(t, c, "others are served")
	require.Contains(t, metrics(t, h), "\nwaybill_cold_unreadable_total ")
	warned(t, h, "sealed runs that cannot be read from the cold store: 2", "the cold store lacks sealed runs")
	require.Equal(t, http.StatusNoContent, remove(t, c, erased).Status)
	require.Equal(t, http.StatusNotFound, statusOf(t, c, erased))
	hot := copied(t, c, "not sealed")
	require.Equal(t, http.StatusNoContent, remove(t, c, hot).Status)
	require.Equal(t, http.StatusNotFound, statusOf(t, c, hot))
	require.NoFileExists(t, filepath.Join(h.Dir(), "cold.db"))
	require.Zero(t, h.Stop().ExitCode())
	for _, f := range lost {
		require.NoError(t, os.Rename(f+".away", f))
	}
	h.Launch()
	h.AwaitLog("the read model is filled again")
	c = h.Client(testKey)
	require.Equal(t, http.StatusOK, statusOf(t, c, runID))
	require.Equal(t, http.StatusNotFound, statusOf(t, c, erased))
	gone(t, h.Dir(), secret)
	sealed(t, h, 4)
	require.Equal(t, http.StatusOK, statusOf(t, c, kept))
	require.Contains(t, string(doing(t, c, http.MethodGet, "/v1/runs/"+runID, "", http.StatusOK).Body), `"sealed"`)
}

// Another file is in the place of the cold store. The operator gives up what it lacks, once.
func TestSeal_GivesUpLostRuns(t *testing.T) {
	t.Parallel()
	args, dir := sealing(t, "--hot-window", "1s"), t.TempDir()
	h := harness.StartIn(t, dir, args...)
	c := h.Client(testKey)
	first := copied(t, c, "in both files")
	sealed(t, h, 1)
	require.Zero(t, h.Stop().ExitCode())
	old, err := os.ReadFile(filepath.Join(h.Dir(), "cold.db"))
	require.NoError(t, err)
	h.Launch()
	c = h.Client(testKey)
	lostRun, erased := copied(t, c, "in the lost file"), copied(t, c, "erased")
	sealed(t, h, 3)
	require.Zero(t, h.Stop().ExitCode())
	moveAway(t, h.Dir())
	require.NoError(t, os.WriteFile(filepath.Join(h.Dir(), "cold.db"), old, 0o600))
	h.Launch()
	c = h.Client(testKey)
	h.AwaitLog("the cold store lacks sealed runs")
	require.Equal(t, http.StatusOK, statusOf(t, c, first))
	damagedRun(t, c, lostRun)
	require.Equal(t, http.StatusNoContent, remove(t, c, erased).Status)
	hot := copied(t, c, "sealed afterwards")
	require.Zero(t, h.Stop().ExitCode())

	h = harness.StartIn(t, dir, append(args, "--give-up-lost-runs")...)
	require.NotContains(t, h.Log(), "the read model is filled again", "it has what is left of the lost runs")
	sealed(t, h, 2)
	c = h.Client(testKey)
	require.Equal(t, http.StatusOK, statusOf(t, c, hot))
	damagedRun(t, c, lostRun)
	warned(t, h, "erasures of sealed runs that may have left content: 1")
	h.AwaitLog("a sealed run is erased that cannot be read as a whole")
	require.Equal(t, 1, strings.Count(h.Log(), "a sealed run is erased that cannot be read as a whole"))
	require.Zero(t, h.Stop().ExitCode())
	out, status := harness.Command(t, append([]string{"dev", "--data-dir", h.Dir(), "--give-up-lost-runs"}, args...)...)
	require.Equal(t, 2, status, out)
	require.Contains(t, out, "leave the flag out")
	h = harness.StartIn(t, dir, args...)
	require.NotContains(t, h.Log(), "the cold store lacks sealed runs")
	require.Equal(t, http.StatusOK, statusOf(t, h.Client(testKey), first))
}

// moveAway takes the files of the cold store away, and returns their names.
func moveAway(t *testing.T, dir string) []string {
	t.Helper()
	lost, err := filepath.Glob(filepath.Join(dir, "cold.db*"))
	require.NoError(t, err)
	for _, f := range lost {
		require.NoError(t, os.Rename(f, f+".away"))
	}
	return lost
}

// damagedRun checks that a sealed run is reported as damaged.
func damagedRun(t *testing.T, c *harness.Client, runID string) {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+runID+"/events/poll", "")
	require.NoError(t, err)
	require.Equal(t, http.StatusInternalServerError, a.Status, "%s", a.Body)
	require.Equal(t, "log_damaged", a.Code())
}

// warned waits until a host that serves, and waybill doctor, report texts.
func warned(t *testing.T, h *harness.Host, texts ...string) {
	t.Helper()
	for _, text := range texts {
		require.Eventually(t, func() bool {
			return strings.Contains(string(doing(t, h.Client(testKey), http.MethodGet, "/readyz", "", http.StatusOK).Body), text)
		}, 10*time.Second, 50*time.Millisecond, text)
		out, _ := harness.Command(t, "doctor", "--url", h.HTTP)
		require.Contains(t, out, text)
	}
}

func TestSeal_RefusesOtherWindows(t *testing.T) {
	t.Parallel()
	needsHost(t)
	for _, bad := range []string{"0", "0s", "-1h", "500ms", "soon", "99999d"} {
		out, status := harness.Command(t, "dev", "--data-dir", t.TempDir(), "--hot-window", bad)
		require.Equal(t, 2, status, bad)
		require.Contains(t, out, "--hot-window", bad)
		require.Contains(t, out, "unlimited", bad)
	}
}
