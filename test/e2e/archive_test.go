package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/archive"
	"waybill.dev/waybill/internal/archive/store"
	"waybill.dev/waybill/test/harness"
)

// archivesOf reads and checks the archives of a directory, by run.
func archivesOf(t *testing.T, dir string) map[string]*archive.Archive {
	t.Helper()
	source := store.Directory(dir)
	names, err := source.List(t.Context())
	require.NoError(t, err)
	all := map[string]*archive.Archive{}
	for _, name := range names {
		file, err := source.Get(t.Context(), name)
		require.NoError(t, err)
		a, err := archive.Read(file)
		require.NoError(t, err, name)
		require.Equal(t, name, a.Name())
		require.NotContains(t, all, a.RunID)
		all[a.RunID] = a
	}
	return all
}

// archiving starts a host with an archive.
func archiving(t *testing.T, to string, more ...string) *harness.Host {
	t.Helper()
	needsHost(t)
	dir := t.TempDir()
	for id, doc := range map[string]string{"copying": copying, "sleepy": waitingFlow, "brief": keeping("brief", "2s")} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, id+".json"), []byte(doc), 0o600))
	}
	return harness.Start(t, append([]string{
		"--workflows", dir, "--lease", "1s", "--metrics-addr", "127.0.0.1:0", "--archive", to,
		"--api-key", testKey + "=acme:*", "--api-key", "other=beta:*", "--api-key", "blind=acme:runs:create",
		"--api-key", "reader=acme:runs:read",
	}, more...)...)
}

// command runs the command against a host, or archives.
func command(t *testing.T, url string, args ...string) (out string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, harness.Binary(t), args...)
	cmd.Env = append(os.Environ(), "WAYBILL_URL="+url, "WAYBILL_TOKEN="+testKey, "HOME="+t.TempDir())
	b, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatalf("run %v: %v", args, err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// Runs are archived on request, by id and by filter, each once, and without their content.
func TestArchive_OnRequest(t *testing.T) {
	t.Parallel()
	to := filepath.Join(t.TempDir(), "archive")
	h := archiving(t, to)
	c, other := h.Client(testKey), h.Client("other")
	secret, tag := canary("content"), canary("tag")
	first := copied(t, c, secret)
	runID := start(t, c, `{"workflowId":"copying","inputs":{"text":"x"},"tags":["`+tag+`"]}`)
	_, err := c.Finish(within(t, 30*time.Second), runID)
	require.NoError(t, err)
	theirs := copied(t, other, secret)
	going := start(t, c, `{"workflowId":"sleepy"}`)

	for body, want := range map[string]int{
		`{}`: http.StatusBadRequest, `{"dryRun":true}`: http.StatusBadRequest, `{"all":true,"filter":"tag:x"}`: http.StatusBadRequest,
		`{"filter":"status:running"}`: http.StatusBadRequest, `{"runIds":["` + first + `"],"all":true}`: http.StatusBadRequest,
		`{"runIds":["a","a"]}`: http.StatusBadRequest, `{"endedBefore":"yesterday"}`: http.StatusBadRequest,
	} {
		doing(t, c, http.MethodPost, "/v1/runs:archive", body, want)
	}
	doing(t, h.Client("reader"), http.MethodPost, "/v1/runs:archive", `{"all":true}`, http.StatusForbidden)
	doing(t, h.Client("blind"), http.MethodPost, "/v1/runs:archive", `{"all":true}`, http.StatusForbidden)
	doing(t, h.Client("blind"), http.MethodGet, "/v1/runs/"+first+"/archive", "", http.StatusForbidden)
	var res struct {
		Archived   int
		NextCursor string
		Refused    []struct{ RunID, Error, Message string }
	}
	request := func(body string) {
		res.Archived, res.Refused, res.NextCursor = 0, nil, ""
		require.NoError(t, doing(t, c, http.MethodPost, "/v1/runs:archive", body, http.StatusOK).JSON(&res))
	}
	request(`{"filter":"tag:` + tag + `","dryRun":true}`)
	require.Equal(t, 1, res.Archived)
	require.Empty(t, archivesOf(t, to))
	request(`{"filter":"tag:` + tag + `"}`)
	require.Equal(t, 1, res.Archived)
	require.Len(t, archivesOf(t, to), 1)
	named := `"runIds":["` + strings.Join([]string{first, runID, going, theirs, "ghost"}, `","`) + `"]`
	for i, body := range []string{`{` + named + `,"dryRun":true}`, `{` + named + `}`} {
		request(body)
		require.Equal(t, 2, res.Archived)
		var refused []string
		for _, r := range res.Refused {
			refused = append(refused, r.RunID+" "+r.Error)
		}
		require.Equal(t, []string{going + " conflict", theirs + " run_not_found", "ghost run_not_found"}, refused)
		require.Len(t, archivesOf(t, to), 1+i)
	}
	request(`{"all":true,"limit":1}`)
	require.NotEmpty(t, res.NextCursor)
	request(`{"all":true}`)
	require.Equal(t, 2, res.Archived)

	all := archivesOf(t, to)
	require.Len(t, all, 2)
	require.NotContains(t, all, theirs)
	for _, path := range below(t, to) {
		require.True(t, strings.HasPrefix(path, "acme/"), path)
	}
	// The archive has what the debug bundle has, and no content.
	var bundle struct {
		Events []struct{ EventID, Type string }
	}
	require.NoError(t, doing(t, c, http.MethodGet, "/v1/runs/"+first+"/debug-bundle", "", http.StatusOK).JSON(&bundle))
	require.Len(t, all[first].Events, len(bundle.Events))
	require.NotContains(t, strings.ReplaceAll(string(all[first].Doc), `"tags":["`+secret+`"]`, ""), secret)

	a := doing(t, c, http.MethodGet, "/v1/runs/"+first+"/archive", "", http.StatusOK)
	got, err := archive.Open(a.Body)
	require.NoError(t, err)
	require.Equal(t, all[first].Frames, got.Frames)
	require.Equal(t, "conflict", doing(t, c, http.MethodGet, "/v1/runs/"+going+"/archive", "", http.StatusConflict).Code())
	doing(t, c, http.MethodGet, "/v1/runs/"+theirs+"/archive", "", http.StatusNotFound)
	log := string(doing(t, c, http.MethodGet, "/v1/audit", "", http.StatusOK).Body)
	require.Contains(t, log, `"run.archived"`)
	require.Contains(t, log, `"archive.exported"`)
	require.NotContains(t, log, theirs)

	// What a caller erases is not archived, and what was archived stays.
	doing(t, c, http.MethodDelete, "/v1/runs/"+first, "", http.StatusNoContent)
	gone := copied(t, c, "x")
	doing(t, c, http.MethodDelete, "/v1/runs/"+gone, "", http.StatusNoContent)
	all = archivesOf(t, to)
	require.Contains(t, all, first)
	require.NotContains(t, all, gone)
	require.Equal(t, "run_not_found", doing(t, c, http.MethodGet, "/v1/runs/"+first+"/archive", "", http.StatusNotFound).Code())

	plain := erasing(t)
	c = plain.Client(testKey)
	require.Equal(t, "capability_not_provided",
		doing(t, c, http.MethodPost, "/v1/runs:archive", `{"runIds":["`+copied(t, c, "x")+`"]}`, http.StatusNotImplemented).Code())
}

// below lists the files of a directory.
func below(t *testing.T, dir string) (paths []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// Runs whose retention is over are archived before they are erased. A host that cannot archive them
// keeps them, also over its death, and archives each once.
func TestArchive_BeforeRetention(t *testing.T) {
	t.Parallel()
	to := filepath.Join(t.TempDir(), "archive")
	h := archiving(t, to, "--retention", "2s")
	c := h.Client(testKey)
	// No folder of the tenant can be created.
	require.NoError(t, os.WriteFile(filepath.Join(to, "acme"), nil, 0o600))
	runs := []string{copiedBy(t, c, "brief", "a"), copiedBy(t, c, "brief", "b")}
	doing(t, c, http.MethodPost, "/v1/workflows", keeping("held", "2s"), http.StatusCreated)
	held := copiedBy(t, c, "held", "c")
	h.AwaitLog("runs whose retention is over are kept, because they are not archived")
	require.Contains(t, metrics(t, h), "\nwaybill_retention_expired_runs_total 0\n")
	require.NotContains(t, metrics(t, h), "\nwaybill_retention_archive_failures_total 0\n")
	for _, id := range append(runs, held) {
		require.Equal(t, http.StatusOK, statusOf(t, c, id))
	}
	doing(t, c, http.MethodPost, "/v1/runs/"+held+"/hold", `{"reason":"case 7"}`, http.StatusOK)
	h.Kill()
	require.NoError(t, os.Remove(filepath.Join(to, "acme")))
	h.Launch()
	c = h.Client(testKey)
	for _, id := range runs {
		expires(t, c, id)
	}
	all := archivesOf(t, to)
	for _, id := range runs {
		require.Contains(t, all, id)
	}
	require.Equal(t, http.StatusOK, statusOf(t, c, held))
	require.NotContains(t, all, held, "a held run is not erased, so it is not archived")
	doing(t, c, http.MethodDelete, "/v1/runs/"+held+"/hold", "", http.StatusNoContent)
	expires(t, c, held)
	require.Len(t, archivesOf(t, to), 3)
}

// Archives are exported, checked, copied and read with commands, without a host.
func TestArchive_IsReadElsewhere(t *testing.T) {
	t.Parallel()
	h := archiving(t, filepath.Join(t.TempDir(), "archive"))
	c := h.Client(testKey)
	runs := []string{copied(t, c, "x"), copied(t, c, "x"), copied(t, c, "x")}
	slices.Sort(runs)
	dir, copies := filepath.Join(t.TempDir(), "out"), filepath.Join(t.TempDir(), "in")

	out, status := command(t, h.HTTP, "run", "archive", "--filter", "workflow:copying", "--dry-run")
	require.Zero(t, status, out)
	require.Equal(t, 3, strings.Count(out, "would be archived"))
	out, status = command(t, h.HTTP, "run", "archive", "--filter", "workflow:copying")
	require.Zero(t, status, out)
	out, status = command(t, h.HTTP, "run", "archive", runs[0], "ghost")
	require.Equal(t, 6, status, out)
	require.Contains(t, out, "run_not_found")
	for _, want := range []string{"archived", "unchanged"} {
		out, status = command(t, h.HTTP, "run", "export", "--filter", "workflow:copying", "--to", dir, "--columns", "RUN,STATUS")
		require.Zero(t, status, out)
		require.Equal(t, 3, strings.Count(out, want), out)
	}
	require.Zero(t, h.Stop().ExitCode())

	// One archive is damaged, another truncated.
	all := archivesOf(t, dir)
	bad := filepath.Join(dir, filepath.FromSlash(all[runs[0]].Name()))
	file, err := os.ReadFile(bad)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(bad, file[:len(file)-9], 0o600))
	out, status = command(t, "", "run", "import", dir, "--to", copies, "--columns", "RUN,OUTCOME,DAMAGE")
	require.Equal(t, 1, status, out)
	require.Contains(t, out, "truncated")
	require.Contains(t, out, all[runs[0]].Name()[:20])
	require.Equal(t, 2, strings.Count(out, "archived"), out)
	require.Len(t, archivesOf(t, copies), 2)
	out, status = command(t, "", "run", "import", copies, "-o", "json")
	require.Zero(t, status, out)
	require.Equal(t, 2, strings.Count(out, `"outcome": "valid"`)+strings.Count(out, `"outcome":"valid"`), out)

	// The copies are read as the runs of a host are.
	url := "archive:" + copies
	out, status = command(t, url, "run", "list", "-o", "name")
	require.Zero(t, status, out)
	listed := strings.Fields(out)
	slices.Sort(listed)
	require.Equal(t, runs[1:], listed)
	out, status = command(t, url, "run", "list", "--status", "failed", "-o", "name")
	require.Zero(t, status, out)
	require.Empty(t, out)
	for _, args := range [][]string{{"get", runs[1]}, {"events", runs[1]}, {"verify", runs[1]}, {"export", runs[1]}, {"get", "@latest"}} {
		out, status = command(t, url, append([]string{"run"}, args...)...)
		require.Zero(t, status, "%v: %s", args, out)
	}
	out, status = command(t, url, "run", "events", runs[1], "--columns", "TYPE")
	require.Zero(t, status, out)
	require.Contains(t, out, "run.completed")
	out, status = command(t, url, "run", "cancel", runs[1])
	require.Equal(t, 6, status, out)
	require.Contains(t, out, "read-only")
	out, status = command(t, url, "run", "get", runs[0])
	require.Equal(t, 5, status, out)
	out, status = command(t, "archive:"+dir, "run", "get", runs[0])
	require.NotZero(t, status, out)
	require.Contains(t, out, "truncated")
	out, status = command(t, url, "run", "list", "--filter", "status:failed")
	require.NotZero(t, status, out)
	require.Contains(t, out, "by status, workflow and tag")
	good := filepath.Join(dir, filepath.FromSlash(all[runs[1]].Name()))
	out, status = command(t, "", "run", "verify", "-f", good)
	require.Zero(t, status, out)
	out, status = command(t, "archive:"+good, "run", "get", runs[1])
	require.Zero(t, status, out)
	out, status = command(t, "", "run", "verify", "-f", bad)
	require.Equal(t, 1, status, out)
	require.Contains(t, out, "truncated")
}

func TestArchive_RefusesTargetsThatCannotBe(t *testing.T) {
	t.Parallel()
	needsHost(t)
	taken := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(taken, nil, 0o600))
	for target, want := range map[string]string{
		"ftp://h/x":                "not supported",
		"s3://":                    "s3://BUCKET/PREFIX",
		"s3://AKIA:geheim@b/x":     "AWS_SECRET_ACCESS_KEY",
		taken:                      "directory",
		filepath.Join(taken, "in"): "directory",
	} {
		out, status := harness.Command(t, "dev", "--data-dir", t.TempDir(), "--archive", target)
		require.Equal(t, 2, status, fmt.Sprint(target, out))
		require.Contains(t, out, "--archive", target)
		require.Contains(t, out, want, target)
		require.NotContains(t, out, "geheim")
	}
}
