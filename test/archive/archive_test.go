package archive

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/archive"
	"waybill.dev/waybill/internal/archive/store"
	"waybill.dev/waybill/test/harness"
)

const key = "hk_test_archive"

const workflow = `{"id":"brief","name":"b","version":"1","nodes":[
	{"id":"copy","typeId":"core.identity","name":"c","position":{"x":0,"y":0},"config":{},"inputs":{"text":{"type":"variable","variableName":"text"}}}
],"edges":[],"triggers":[],"variables":[{"name":"text","type":"string"}],"metadata":{},"settings":{"retention":"1s"}}`

// host starts a host with an archive in the bucket.
func host(t *testing.T, s *server) *harness.Host {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "brief.json"), []byte(workflow), 0o600))
	return harness.StartWith(t, harness.Options{Env: s.env(), Args: []string{
		"--workflows", dir, "--lease", "1s", "--archive", "s3://" + bucket + "/waybill", "--api-key", key + "=acme:*",
		"--retention", "1s",
	}})
}

// runs starts runs, and waits until they have ended.
func runs(t *testing.T, c *harness.Client, n int) (ids []string) {
	t.Helper()
	for range n {
		a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs", `{"workflowId":"brief","inputs":{"text":"x"}}`)
		require.NoError(t, err)
		require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
		var run struct{ RunID string }
		require.NoError(t, a.JSON(&run))
		ids = append(ids, run.RunID)
	}
	return ids
}

func statusOf(t *testing.T, c *harness.Client, id string) int {
	t.Helper()
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+id, "")
	require.NoError(t, err)
	return a.Status
}

// expire waits until runs are erased, and checks that the bucket has each of them once.
func expire(t *testing.T, s *server, c *harness.Client, ids []string) {
	t.Helper()
	for _, id := range ids {
		require.Eventually(t, func() bool { return statusOf(t, c, id) == http.StatusNotFound }, 2*time.Minute, 50*time.Millisecond, id)
	}
	s.check(t, ids)
}

// check checks that the bucket has the archives of runs, each once, and nothing else.
func (s *server) check(t *testing.T, ids []string) {
	t.Helper()
	at := store.Directory(filepath.Join(s.files, "waybill"))
	names, err := at.List(t.Context())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // nothing was stored
	}
	require.NoError(t, err)
	var found []string
	for _, name := range names {
		file, err := at.Get(t.Context(), name)
		require.NoError(t, err)
		a, err := archive.Read(file)
		require.NoError(t, err, name)
		require.Equal(t, name, a.Name())
		found = append(found, a.RunID)
	}
	require.ElementsMatch(t, ids, found)
}

// What is archived in a bucket is checked, copied and read with commands.
func TestBucket_IsWrittenAndRead(t *testing.T) {
	t.Parallel()
	s := serve(t)
	h := host(t, s)
	ids := runs(t, h.Client(key), 3)
	expire(t, s, h.Client(key), ids)
	require.Equal(t, 3, s.puts())
	require.Zero(t, h.Stop().ExitCode())
	require.NotContains(t, h.Log(), secretKey)

	const from = "s3://" + bucket + "/waybill"
	out, status := s.command(t, "", "run", "import", from)
	require.Zero(t, status, out)
	require.Equal(t, 3, strings.Count(out, "valid"), out)
	dir := t.TempDir()
	out, status = s.command(t, "", "run", "import", from, "--to", dir)
	require.Zero(t, status, out)
	out, status = s.command(t, "archive:"+from, "run", "get", ids[0])
	require.Zero(t, status, out)
	out, status = s.command(t, "archive:"+dir, "run", "list", "-o", "name")
	require.Zero(t, status, out)
	require.Len(t, strings.Fields(out), 3)
	// To another prefix, twice.
	for _, want := range []string{"archived", "unchanged"} {
		out, status = s.command(t, "", "run", "import", dir, "--to", "s3://"+bucket+"/copy", "--columns", "OUTCOME")
		require.Zero(t, status, out)
		require.Equal(t, 3, strings.Count(out, want), out)
	}
	for name, bad := range map[string]struct{ env, want string }{
		"a wrong secret":    {"AWS_SECRET_ACCESS_KEY=" + "wrong-secret", "SignatureDoesNotMatch"},
		"no credential":     {"AWS_ACCESS_KEY_ID=", "no valid credentials"},
		"no server":         {"AWS_ENDPOINT_URL_S3=http://127.0.0.1:1", "no answer from the server"},
		"an unknown bucket": {"", "NoSuchBucket"},
	} {
		at := &server{URL: s.URL}
		source := from
		if bad.env == "" {
			source = "s3://elsewhere/x"
		}
		out, status = at.commandWith(t, bad.env, "run", "import", source)
		require.NotZero(t, status, name)
		require.Contains(t, out, bad.want, name)
		require.NotContains(t, out, secretKey, name)
		require.NotContains(t, out, "wrong-secret", name)
	}
}

// A bucket that is away, full, or answers nonsense: nothing is erased, and all of it later.
func TestBucket_IsAwayOrFull(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"away": func(w http.ResponseWriter, _ *http.Request) bool {
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = c.Close()
			}
			return true
		},
		"full":      refuse(http.StatusInsufficientStorage, "XMinioStorageFull"),
		"quota":     refuse(http.StatusForbidden, "QuotaExceeded"),
		"throttled": refuse(http.StatusServiceUnavailable, "SlowDown"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			s.set(fault)
			h := host(t, s)
			c := h.Client(key)
			ids := runs(t, c, 3)
			h.AwaitLog("runs whose retention is over are kept, because they are not archived")
			for _, id := range ids {
				require.Equal(t, http.StatusOK, statusOf(t, c, id))
			}
			a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs:archive", `{"runIds":["`+ids[0]+`"]}`)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
			require.Contains(t, string(a.Body), "service_unavailable")
			require.NotContains(t, string(a.Body), bucket+"/")
			s.check(t, nil)
			s.set(nil)
			expire(t, s, c, ids)
			require.NotContains(t, h.Log(), secretKey)
		})
	}
}

// A slow bucket delays the erasure, and nothing else.
func TestBucket_IsSlow(t *testing.T) {
	t.Parallel()
	s := serve(t)
	h := host(t, s)
	c := h.Client(key)
	held := make(chan struct{})
	var release sync.Once
	s.onStored(func() { <-held })
	t.Cleanup(func() { release.Do(func() { close(held) }) })
	ids := runs(t, c, 3)
	require.Eventually(t, func() bool { return s.puts() > 0 }, 2*time.Minute, 20*time.Millisecond)
	for _, id := range ids {
		require.Equal(t, http.StatusOK, statusOf(t, c, id), "it is not acknowledged")
	}
	more := runs(t, c, 1)
	a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+more[0], "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, a.Status)
	release.Do(func() { close(held) })
	expire(t, s, c, append(ids, more...))
}

// A host is killed after the bucket has stored a run, and before it knows: the run is erased by the next
// host, and the object of the first stays.
func TestBucket_KillBetweenUploadAndErasure(t *testing.T) {
	t.Parallel()
	s := serve(t)
	h := host(t, s)
	c := h.Client(key)
	stored, held := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.onStored(func() {
		once.Do(func() { close(stored) })
		<-held
	})
	ids := runs(t, c, 1)
	<-stored
	require.Equal(t, http.StatusOK, statusOf(t, c, ids[0]))
	h.Kill()
	s.check(t, ids)
	before := s.objects(t)
	s.onStored(nil)
	close(held)
	h.Launch()
	expire(t, s, h.Client(key), ids)
	require.Equal(t, before, s.objects(t), "the object is not written again")
	require.Equal(t, 1, s.puts())
}

// objects returns the content of all objects.
func (s *server) objects(t *testing.T) string {
	t.Helper()
	var all bytes.Buffer
	at := store.Directory(s.files)
	names, err := at.List(t.Context())
	require.NoError(t, err)
	for _, name := range names {
		file, err := at.Get(t.Context(), name)
		require.NoError(t, err)
		fmt.Fprintf(&all, "%s %x\n", name, file)
	}
	return all.String()
}

// A host is killed again and again while it archives and erases: at each moment a run is on the host or
// in the bucket, and at the end the bucket has each once.
func TestBucket_KillsAtAnyMoment(t *testing.T) {
	t.Parallel()
	s := serve(t)
	h := host(t, s)
	var ids []string
	const rounds = 5
	for round := range rounds {
		// Each round ends one upload later than the one before.
		seen := make(chan struct{})
		var uploads atomic.Int32
		s.set(func(_ http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut && uploads.Add(1) == int32(round+1) { //nolint:gosec // G115: few rounds
				close(seen)
			}
			return false
		})
		ids = append(ids, runs(t, h.Client(key), rounds)...)
		<-seen
		h.Kill()
		s.set(nil)
		h.Launch()
		archived := s.objects(t)
		for _, id := range ids {
			if statusOf(t, h.Client(key), id) == http.StatusNotFound {
				require.Contains(t, archived+s.objects(t), "/"+id+".")
			}
		}
	}
	expire(t, s, h.Client(key), ids)
}
