package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// acknowledged is a journal outside the host: the runs that it has acknowledged, by key.
type acknowledged struct {
	mu   sync.Mutex
	runs map[string]string
}

func (a *acknowledged) copy() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.runs)
}

func keyed(ctx context.Context, c *harness.Client, key, text string) (runID string, err error) {
	a, err := c.Do(ctx, http.MethodPost, "/v1/runs", fmt.Sprintf(`{"workflowId":"copying","inputs":{"text":%q}}`, text), "Idempotency-Key", key)
	if err != nil {
		return "", err
	}
	var run struct{ RunID string }
	if err := a.JSON(&run); err != nil || a.Status != http.StatusCreated {
		return "", fmt.Errorf("status %d: %w", a.Status, err)
	}
	return run.RunID, nil
}

// load creates runs until the test's context or stop ends it.
func (a *acknowledged) load(t *testing.T, h *harness.Host, clients int) (stop func()) {
	t.Helper()
	a.runs = map[string]string{}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for n := range clients {
		c := h.Client(testKey)
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				key := fmt.Sprintf("key-%d-%d", n, i)
				if id, err := keyed(ctx, c, key, key); err == nil {
					a.mu.Lock()
					a.runs[key] = id
					a.mu.Unlock()
				}
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

// atLeast waits until so many runs were acknowledged.
func (a *acknowledged) atLeast(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(a.copy()) >= n }, time.Minute, 10*time.Millisecond)
}

// restored starts a host on a restored backup.
func restored(t *testing.T, file string, args ...string) *harness.Host {
	t.Helper()
	dir := t.TempDir()
	out, status := harness.Command(t, "restore", file, "--data-dir", filepath.Join(dir, "data"))
	require.Zero(t, status, out)
	return harness.StartIn(t, dir, args...)
}

// A backup of a host that serves requests has everything that was acknowledged before, and a restored
// host continues.
func TestBackup_HasWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	h := erasing(t)
	args := []string{"--workflows", filepath.Join(t.TempDir()), "--lease", "1s", "--api-key", testKey + "=acme:*", "--metrics-addr", "127.0.0.1:0"}
	c := h.Client(testKey)
	noted := copied(t, c, "noted")
	doing(t, c, http.MethodPost, "/v1/runs/"+noted+"/annotations", `{"signal":{"kind":"label","label":"kept"}}`, http.StatusCreated)
	doing(t, c, http.MethodPost, "/v1/views", `{"viewId":"v","name":"kept view"}`, http.StatusOK)
	doing(t, c, http.MethodPost, "/v1/runs/"+noted+"/hold", `{"reason":"case 7"}`, http.StatusOK)
	erased := copied(t, c, "erased")
	require.Equal(t, http.StatusNoContent, remove(t, c, erased).Status)
	sleeping := start(t, c, `{"workflowId":"sleepy"}`)

	var journal acknowledged
	stop := journal.load(t, h, 4)
	journal.atLeast(t, 50)
	for i := range 3 {
		before := journal.copy()
		file := filepath.Join(t.TempDir(), "backup.tar")
		out, status := harness.Command(t, "backup", file, "--data-dir", h.Dir())
		require.Zero(t, status, out)
		require.Contains(t, out, "verified")
		if i < 2 {
			journal.atLeast(t, len(before)+20)
			continue
		}
		stop()
		h.Kill()
		r := restored(t, file, args...)
		c := r.Client(testKey)
		for key, id := range before {
			_, err := c.Finish(within(t, 30*time.Second), id)
			require.NoError(t, err, key)
			again, err := keyed(t.Context(), c, key, key)
			require.NoError(t, err)
			require.Equal(t, id, again, "a repeated request creates no second run")
		}
		require.Equal(t, http.StatusOK, statusOf(t, c, sleeping))
		doing(t, c, http.MethodPost, "/v1/runs/"+sleeping+"/cancel", `{}`, http.StatusOK)
		require.Equal(t, http.StatusNotFound, statusOf(t, c, erased))
		require.Equal(t, http.StatusConflict, remove(t, c, noted).Status, "it has its hold")
		require.Contains(t, string(doing(t, c, http.MethodGet, "/v1/runs/"+noted+"/annotations", "", http.StatusOK).Body), "kept")
		require.Contains(t, string(doing(t, c, http.MethodGet, "/v1/views", "", http.StatusOK).Body), "kept view")
		copied(t, c, "new")
		require.NotContains(t, r.Log(), "will be rebuilt")
		require.Zero(t, r.Stop().ExitCode())
		out, status = harness.Command(t, "log", "verify", "--data-dir", r.Dir())
		require.Zero(t, status, out)
	}
}

// A damaged or unfinished backup is refused, and nothing is overwritten.
func TestRestore_RefusesDamage(t *testing.T) {
	t.Parallel()
	h := erasing(t)
	copied(t, h.Client(testKey), "text")
	dir := t.TempDir()
	file := filepath.Join(dir, "backup.tar")
	out, status := harness.Command(t, "backup", file, "--data-dir", h.Dir())
	require.Zero(t, status, out)
	doc, err := os.ReadFile(file)
	require.NoError(t, err)

	out, status = harness.Command(t, "backup", file, "--data-dir", h.Dir())
	require.Equal(t, 2, status, out)
	require.Contains(t, out, "exists")
	out, status = harness.Command(t, "backup", file+"2", "--data-dir", t.TempDir())
	require.NotZero(t, status)
	require.Contains(t, out, "no host of this release runs on it")

	flipped := bytes.Clone(doc)
	flipped[bytes.Index(doc, []byte("streams/WAYBILL_RUNS/000001"))+700] ^= 1
	for name, content := range map[string][]byte{
		"cut": doc[:len(doc)/2], "flipped": flipped, "empty": nil, "text": []byte("a text"),
	} {
		bad := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(bad, content, 0o600))
		into := filepath.Join(dir, "into", name)
		out, status := harness.Command(t, "restore", bad, "--data-dir", into)
		require.Equal(t, 1, status, out)
		require.Contains(t, out, "the backup is damaged", name)
		require.NoDirExists(t, into)
	}
	out, status = harness.Command(t, "restore", file, "--data-dir", h.Dir())
	require.Equal(t, 2, status, out)
	require.Contains(t, out, "not empty")
	out, status = harness.Command(t, "restore", filepath.Join(dir, "none"), "--data-dir", filepath.Join(dir, "x"))
	require.NotZero(t, status)
	require.Contains(t, out, "no such file")
	out, status = harness.Command(t, "restore", file)
	require.Equal(t, 2, status, out)
	copied(t, h.Client(testKey), "the host still serves")
}

// The host or the command is killed during a backup, or the disk is full: there is no backup with the
// name, and the next one succeeds.
func TestBackup_LeavesNothingHalf(t *testing.T) {
	t.Parallel()
	h := erasing(t)
	var journal acknowledged
	stop := journal.load(t, h, 4)
	journal.atLeast(t, 100)
	dir := t.TempDir()
	file := filepath.Join(dir, "backup.tar")

	out := whenFree(t, func() string {
		limited := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -f 64; exec "$0" backup "$1" --data-dir "$2"`, harness.Binary(t), file, h.Dir())
		out, err := limited.CombinedOutput()
		require.Error(t, err)
		return string(out)
	})
	require.Contains(t, out, "write the backup")
	require.Empty(t, entries(t, dir))

	for range 5 {
		p, wait := backingUp(t, h, file)
		if err := p.Signal(syscall.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
			require.NoError(t, err)
		}
		_, _ = wait()
		for _, name := range entries(t, dir) {
			if name == "backup.tar" { // it was complete before
				out, status := harness.Command(t, "restore", file, "--data-dir", filepath.Join(t.TempDir(), "data"))
				require.Zero(t, status, out)
			}
			require.NoError(t, os.Remove(filepath.Join(dir, name)))
		}
	}
	stop()
	_, wait := backingUp(t, h, file)
	h.Kill()
	output, err := wait()
	if err == nil { // the backup was faster
		require.NoError(t, os.Remove(file))
	} else {
		require.Contains(t, output, "backup")
		require.Empty(t, entries(t, dir), "%s", output)
	}
	h.Launch()
	text, status := harness.Command(t, "backup", file, "--data-dir", h.Dir())
	require.Zero(t, status, text)
	require.Equal(t, []string{"backup.tar"}, entries(t, dir))
	require.Empty(t, must(filepath.Glob(filepath.Join(h.Dir(), "backup-*"))), "copies of the read model")
}

// whenFree repeats a command while the host writes another backup: that of a killed command ends a
// moment after it.
func whenFree(t *testing.T, command func() (out string)) (out string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < time.Minute; <-tick.C {
		if out = command(); !strings.Contains(out, busy) {
			return out
		}
	}
	require.Fail(t, "the host stays busy", out)
	return out
}

// busy is part of the error of a backup while another one is written.
const busy = "another backup is being written"

// backingUp starts a backup, and returns once its file is there.
func backingUp(t *testing.T, h *harness.Host, file string) (p *os.Process, wait func() (output string, err error)) {
	t.Helper()
	whenFree(t, func() string {
		var output bytes.Buffer
		cmd := exec.CommandContext(t.Context(), harness.Binary(t), "backup", file, "--data-dir", h.Dir())
		cmd.Stdout, cmd.Stderr = &output, &output
		require.NoError(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		p, wait = cmd.Process, func() (string, error) { err := <-ended; return output.String(), err }
		for len(entries(t, filepath.Dir(file))) == 0 {
			select {
			case err := <-ended:
				require.Error(t, err, "a backup without a file")
				require.Contains(t, output.String(), busy)
				return output.String()
			case <-time.After(time.Millisecond):
			}
		}
		return ""
	})
	return p, wait
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
