// Package sealing tests a host in many processes whose ended runs are moved to a cold store that all of
// them read: in PostgreSQL, and in a bucket of an S3 server if WAYBILL_S3 names one (make integration
// ONLY=sealing).
package sealing

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/freeport"
	"waybill.dev/waybill/internal/postgrestest"
	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/internal/runlog/cold/postgres"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/test/harness"
)

func TestMain(m *testing.M) {
	m.Run()
	harness.Clean()
}

const (
	key    = "sealing-key"
	tenant = "acme"
	schema = "waybill_cold"
	copies = `{"id":"copying","name":"c","version":"1","nodes":[
	{"id":"copy","typeId":"core.identity","name":"c","position":{"x":0,"y":0},"config":{},"inputs":{"text":{"type":"variable","variableName":"text"}}}
],"edges":[],"triggers":[],"variables":[{"name":"text","type":"string"}],"metadata":{},"settings":{}}`
)

// The credential of the S3 server.
const (
	accessKey = "AKIAWAYBILLTEST"
	secretKey = "the-secret-of-the-bucket"
)

// rig is a host in many processes with a database for its cold store.
type rig struct {
	*harness.Host

	db    *postgrestest.Server
	store *postgres.Store
	args  []string
	dir   string
	// bucket is the directory of the bucket; empty without one.
	bucket string
}

func newRig(t *testing.T, inBucket bool) *rig {
	t.Helper()
	if os.Getenv("NATS_SERVER") == "" {
		t.Skip("SKIPPED, not a host in many processes: see `make spread`")
	}
	r := &rig{db: postgrestest.Start(t), dir: t.TempDir()}
	file := filepath.Join(t.TempDir(), "url")
	require.NoError(t, os.WriteFile(file, []byte(r.db.URL()), 0o600))
	r.args = []string{"--api-key", key + "=" + tenant + ":*", "--lease", "1s", "--cold-postgres-url-file", file}
	if inBucket {
		r.args = append(r.args, "--cold-bucket", "s3://cold/sealed")
		r.bucket = serveBucket(t, "cold")
	}
	var err error
	r.store, err = postgres.Open(t.Context(), postgres.Config{URLFile: file, Schema: schema, MaxConns: 2})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.store.Close()) })
	return r
}

// serveBucket starts an S3 server with a bucket and points the AWS_ variables at it. It returns the
// bucket's directory.
func serveBucket(t *testing.T, name string) string {
	t.Helper()
	binary := os.Getenv("WAYBILL_S3")
	if binary == "" {
		t.Skip("SKIPPED, WAYBILL_S3 is unset: it names the binary of tools/s3")
	}
	dir, addr := t.TempDir(), freeport.Addr(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	t.Setenv("AWS_ACCESS_KEY_ID", accessKey)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://"+addr)
	cmd := exec.CommandContext(t.Context(), binary, addr, dir)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Wait() }) // the context has ended
	require.Eventually(t, func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr, nil)
		require.NoError(t, err)
		res, err := http.DefaultClient.Do(req)
		return err == nil && res.Body.Close() == nil
	}, 30*time.Second, 20*time.Millisecond, "the S3 server listens")
	return filepath.Join(dir, name)
}

func (r *rig) start(t *testing.T, more ...string) {
	t.Helper()
	r.Host = harness.StartIn(t, r.dir, append(r.args, more...)...)
}

func (r *rig) do(t *testing.T, method, path, body string, want int) *harness.Answer {
	t.Helper()
	a, err := r.Client(key).Do(t.Context(), method, path, body)
	require.NoError(t, err)
	require.Equal(t, want, a.Status, "%s %s: %s", method, path, a.Body)
	return a
}

// create executes a run with a text.
func (r *rig) create(t *testing.T, text string) string {
	t.Helper()
	var run struct{ RunID string }
	body := fmt.Sprintf(`{"workflowId":"copying","inputs":{"text":%q},"tags":[%q]}`, text, text[:8])
	require.NoError(t, json.Unmarshal(r.do(t, http.MethodPost, "/v1/runs", body, http.StatusCreated).Body, &run))
	_, err := r.Client(key).Finish(t.Context(), run.RunID)
	require.NoError(t, err)
	return run.RunID
}

// sealed waits until a number of runs are sealed and none of them is in the log.
func (r *rig) sealed(t *testing.T, runs int) {
	t.Helper()
	var got cold.Totals
	require.Eventually(t, func() bool {
		var err error
		got, err = r.store.Totals(t.Context())
		return err == nil && got.Pending == 0 && got.Runs == int64(runs)
	}, 2*time.Minute, 100*time.Millisecond, "%d runs are sealed and have left the log", runs)
}

var changing = regexp.MustCompile(`"generatedAt":"[^"]*"`)

// reading returns all answers about runs.
func (r *rig) reading(t *testing.T, runs ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, id := range runs {
		for _, path := range []string{"", "/events/poll", "/events/poll?lastSequence=0", "/debug-bundle", ":view", "/events?streamMode=debug"} {
			out[id+path] = changing.ReplaceAllString(string(r.do(t, http.MethodGet, "/v1/runs/"+id+path, "", http.StatusOK).Body), "")
		}
	}
	return out
}

// contains reports whether the cold store has a text, in any of its tables or objects.
func (r *rig) contains(t *testing.T, run string) bool {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), r.db.URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	var n int
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM `+schema+`.objects o
		LEFT JOIN `+schema+`.blocks b ON b.id = o.id WHERE o.run_id = $1 AND (b.n IS NOT NULL OR o.body_key IS NOT NULL)`, run).Scan(&n))
	return n > 0
}

func batches(t *testing.T, dir string) (n int) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".wbc") {
			n++
		}
		return err
	}))
	return n
}

// All services answer about sealed runs as before: with two of each, after a kill of all, with read models
// that are filled again, and after an erasure.
func TestSealing_ServicesReadSealedRuns(t *testing.T) {
	for name, inBucket := range map[string]bool{"in the database": false, "in a bucket": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, inBucket)
			r.start(t)
			r.do(t, http.MethodPost, "/v1/workflows", copies, http.StatusCreated)
			var runs []string
			for i := range 6 {
				runs = append(runs, r.create(t, fmt.Sprintf("canary-%d-%s", i, strings.Repeat("x", 2000))))
			}
			want := r.reading(t, runs...)
			require.Zero(t, r.Stop().ExitCode())

			r.start(t, "--hot-window", "1s")
			r.sealed(t, len(runs))
			require.Equal(t, want, r.reading(t, runs...))
			if inBucket {
				require.NotZero(t, batches(t, r.bucket))
				require.Less(t, batches(t, r.bucket), len(runs), "runs share an object")
			}
			r.Kill()
			r.dropReadModels(t)
			r.Launch()
			require.Equal(t, want, r.reading(t, runs...))

			var fork struct{ RunID string }
			require.NoError(t, r.do(t, http.MethodPost, "/v1/runs/"+runs[1]+":fork", `{"mode":"branch","fromSeq":2}`, http.StatusCreated).JSON(&fork))
			_, err := r.Client(key).Finish(t.Context(), fork.RunID)
			require.NoError(t, err)
			r.sealed(t, len(runs)+1)

			r.do(t, http.MethodDelete, "/v1/runs/"+runs[0], "", http.StatusNoContent)
			require.Eventually(t, func() bool { return !r.contains(t, runs[0]) }, time.Minute, 100*time.Millisecond, "the erased run leaves the cold store")
			r.do(t, http.MethodGet, "/v1/runs/"+runs[0], "", http.StatusNotFound)
			r.do(t, http.MethodGet, "/v1/runs/"+runs[0]+"/events/poll", "", http.StatusNotFound)
			_, _, err = r.store.Blocks(t.Context(), subject.Run{Tenant: tenant, RunID: runs[0]})
			require.ErrorIs(t, err, cold.ErrDeleted)
			for _, id := range runs[1:] {
				require.Contains(t, string(r.do(t, http.MethodGet, "/v1/runs/"+id+"/events/poll", "", http.StatusOK).Body), "canary")
			}
		})
	}
}

// Kills while runs are sealed lose none, and a database that is away does not stop the host.
func TestSealing_SurvivesKillsAndOutages(t *testing.T) {
	r := newRig(t, os.Getenv("WAYBILL_S3") != "")
	r.start(t, "--hot-window", "1s")
	r.do(t, http.MethodPost, "/v1/workflows", copies, http.StatusCreated)
	want := map[string]string{}
	for round := range 4 {
		var mu sync.Mutex
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				text := fmt.Sprintf("canary-%d-%d", round, i)
				id := r.create(t, text)
				mu.Lock()
				defer mu.Unlock()
				want[id] = text
			})
		}
		wg.Wait()
		if round == 1 { // runs go on without the database, and are sealed later
			require.NoError(t, r.db.Stop("immediate"))
			want[r.create(t, "canary-away")] = "canary-away"
			require.NoError(t, r.db.Restart())
		}
		before, err := r.store.Totals(t.Context())
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			now, err := r.store.Totals(t.Context())
			return err == nil && now.Runs > before.Runs
		}, time.Minute, time.Duration(1+7*round)*time.Millisecond, "runs are being sealed")
		r.Kill()
		r.Launch()
	}
	r.sealed(t, len(want))
	for id, text := range want {
		require.Contains(t, string(r.do(t, http.MethodGet, "/v1/runs/"+id+"/events/poll", "", http.StatusOK).Body), text)
	}
}

// query runs statements in the database of the cold store.
func (r *rig) query(t *testing.T, statements string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), r.db.URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	_, err = conn.Exec(t.Context(), statements, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err)
}

// The database is lost, and a new one is in its place. Nothing is sealed into it, and an erasure waits. When
// the database is restored, both go on without a restart.
func TestSealing_WaitsForALostDatabase(t *testing.T) {
	r := newRig(t, false)
	r.start(t, "--hot-window", "1s")
	r.do(t, http.MethodPost, "/v1/workflows", copies, http.StatusCreated)
	kept, erased := r.create(t, "canary-kept"), r.create(t, "canary-erased")
	r.sealed(t, 2)
	require.Zero(t, r.Stop().ExitCode())

	r.query(t, `ALTER SCHEMA `+schema+` RENAME TO away`)
	r.Launch()
	r.AwaitLog("the cold store lacks sealed runs")
	a := r.do(t, http.MethodGet, "/v1/runs/"+kept+"/events/poll", "", http.StatusInternalServerError)
	require.Equal(t, "log_damaged", a.Code())
	later := r.create(t, "canary-later")
	r.do(t, http.MethodDelete, "/v1/runs/"+erased, "", http.StatusNoContent)
	r.AwaitLog("run not erased yet")
	got, err := r.store.Totals(t.Context())
	require.NoError(t, err)
	require.Zero(t, got.Runs)

	r.query(t, `DROP SCHEMA `+schema+` CASCADE; ALTER SCHEMA away RENAME TO `+schema)
	r.sealed(t, 2)
	require.Eventually(t, func() bool { return !r.contains(t, erased) }, time.Minute, 100*time.Millisecond, "the erasure is carried out")
	require.Zero(t, r.Stop().ExitCode())
	r.dropReadModels(t) // they were filled again for the erasure, and have noted the others as damaged
	r.Launch()
	r.do(t, http.MethodGet, "/v1/runs/"+erased, "", http.StatusNotFound)
	for _, id := range []string{kept, later} {
		require.Contains(t, string(r.do(t, http.MethodGet, "/v1/runs/"+id+"/events/poll", "", http.StatusOK).Body), "canary")
	}
}

// dropReadModels removes the read models of a host that is stopped.
func (r *rig) dropReadModels(t *testing.T) {
	t.Helper()
	models, err := filepath.Glob(filepath.Join(r.Dir(), "eventlog*"))
	require.NoError(t, err)
	for _, dir := range models {
		require.NoError(t, os.RemoveAll(dir))
	}
}
