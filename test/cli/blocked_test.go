package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// shows waits until a command's output matches.
func (u user) shows(want string, args ...string) string {
	u.t.Helper()
	var r result
	require.Eventually(u.t, func() bool {
		r = u.run(args...)
		return regexp.MustCompile(want).MatchString(r.out)
	}, time.Minute, 200*time.Millisecond, "%v shows %s: %v", args, want, &r)
	return r.out
}

// line is the line of a run in a list.
func line(out, run string) string {
	for l := range strings.Lines(out) {
		if strings.HasPrefix(l, run) {
			return l
		}
	}
	return ""
}

// A run waits for a limit, and then its log is damaged. Each time one command shows why it does not
// move, and it never counts as stalled.
func TestRun_GetAndOwnerShowWhyARunDoesNotMove(t *testing.T) {
	t.Parallel()
	harness.InOneProcess(t, "it damages the embedded log's file")
	released := make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	called := make(chan struct{}, 8)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called <- struct{}{}
		select {
		case <-released:
		case <-r.Context().Done():
		}
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusBadRequest)
	}))
	t.Cleanup(model.Close)
	t.Cleanup(release) // first
	host := harness.Start(t, "--api-key", testKey+"=acme:*", "--stalled-after", "1s", "--lease", "1s",
		"--provider", "slow="+model.URL+"/v1", "--default-model", "slow/m", "--unknown-models", "trust")
	one := strings.Replace(definition("one-by-one", node("a", "core.ai.callPrompt", `{"prompt":"hello"}`, "{}"), `{"name":"text","type":"string"}`),
		`"settings":{}`, `"settings":{"concurrency":{"limit":1}}`, 1)
	nightly := definition("nightly", node("sleep", "core.delay", "{}", `{"delayMs":{"type":"static","value":86400000}}`), "")
	require.NoError(t, host.Deploy([]string{one, nightly}, testKey))
	u := at(t, host.HTTP, testKey).with("NO_COLOR=1")

	sleeps := u.start("nightly")
	require.Regexp(t, `next +waits for timer at sleep until 20\d\d-\d\d-\d\dT\d\d:\d\d`, u.shows("timer", "run", "get", sleeps))

	first := u.start("one-by-one", "--set", "text=pad-a")
	select {
	case <-called:
	case <-time.After(60 * time.Second):
		t.Fatal("the model was not called")
	}
	waits := u.start("one-by-one")
	const limit = `the workflow's concurrency limit: 1 at a time`
	require.Regexp(t, `next +waits for `+limit+`, since 20\S+ \(`, u.shows(limit, "run", "get", waits))
	require.Contains(t, line(u.shows(limit, "run", "list"), waits), limit)
	require.Regexp(t, `waits for +`+limit, u.shows(limit, "run", "owner", waits))
	require.JSONEq(t, `{"reason":"concurrency","scope":"workflow","limit":1,"keyed":false}`,
		u.ok("run", "get", waits, "--query", ".waybill.waits.limit | del(.since)").out)
	require.NotContains(t, u.ok("run", "get", waits).out, "stalled", "after more than --stalled-after")

	r := u.run("run", "quarantine", "retry", waits)
	require.Equal(t, 5, r.status)
	require.Contains(t, r.err, "not_quarantined: this run is not in quarantine")
	require.Contains(t, r.err, "waybill run quarantine list")

	host.Stop()
	damage(t, filepath.Join(host.Dir(), "nats", "jetstream", "$G", "streams", "WAYBILL_RUNS", "msgs", "1.blk"), "pad-a")
	host.Launch()
	release()
	u = at(t, host.HTTP, testKey).with("NO_COLOR=1")
	out := u.shows("quarantined", "run", "get", first)
	require.Contains(t, out, "running (quarantined)")
	require.Regexp(t, `quarantine +log_damaged, since 20\S+ \(\S+\); its log is damaged: restore the log from a backup`, out)
	require.Regexp(t, `next +waybill run quarantine retry `+first+`\n`, out)
	require.NotContains(t, out, "stalled")
	require.Contains(t, line(u.shows("quarantined", "run", "list"), first), "quarantined: log_damaged")
	r = u.run("run", "owner", first)
	require.Equal(t, 6, r.status)
	require.Contains(t, r.err, "log_damaged: the log of this run is damaged")
	require.Contains(t, r.err, "Restore the log from a backup")
}

// damage flips a bit in a file, in the last letter of a text.
func damage(t *testing.T, file, text string) {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	at := bytes.Index(b, []byte(text))
	require.Positive(t, at)
	for i := range text { // more than one bit: a single one is repaired
		b[at+i] ^= 0x10
	}
	require.NoError(t, os.WriteFile(file, b, 0o600))
}

// A file of limits with several errors names all of them, with their paths and what is allowed.
func TestDev_SettingsFilesReportAllErrors(t *testing.T) {
	t.Parallel()
	u := stranger(t)
	for flag, tc := range map[string]struct {
		doc  string
		want []string
	}{
		"--tenant-limits": {`{"tenants":{"acme":{"weight":0,"prio":1},"*":{"concurrency":{"limit":"many"}}}}`, []string{
			`at "/tenants/acme/weight": 0: want 1 to 1000`, `at "/tenants/acme/prio": unknown member; allowed here: concurrency, priority, rate, retention, weight`,
			`at "/tenants/*/concurrency/limit": want a number, got a string`,
		}},
		"--provider-settings": {`{"providers":{"sample":{"maxConcurrent":-1,"timeouts":{"callMs":"1h"}},"*":{"requests":1}}}`, []string{
			`at "/providers/sample/maxConcurrent": -1: want 0 (no limit) or more`, `at "/providers/sample/timeouts/callMs": want a number, got a string`,
			`at "/providers/*/requests": unknown member; allowed here: api, aws, baseUrl, body,`,
		}},
	} {
		file := filepath.Join(t.TempDir(), "limits.json")
		require.NoError(t, os.WriteFile(file, []byte(tc.doc), 0o600))
		r := u.run("dev", "--data-dir", t.TempDir(), "--http-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", flag, file)
		require.Equal(t, 2, r.status, r.err)
		require.Contains(t, r.err, flag+" "+file)
		for _, want := range tc.want {
			require.Contains(t, r.err, want)
		}
	}
}
