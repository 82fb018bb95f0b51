package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// checks returns the statuses of a verification, by name.
func checks(t *testing.T, out string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, c := range document(t, out)["checks"].([]any) {
		c := c.(map[string]any)
		got[c["check"].(string)] = c["status"].(string)
	}
	require.NotEmpty(t, got)
	return got
}

// Completed, failed, waiting and corrected runs pass all checks.
func TestRunVerify_FindsNothingInRunsOfThisHost(t *testing.T) {
	t.Parallel()
	u := member(t)
	answers(t, "asks", `{"category":"nonsense"}`, `not JSON`)
	ids := []string{u.start("wait"), u.waiting("approve"), u.waiting("clarify"), u.waiting("form")}
	for _, w := range []string{"noop", "fail", "corrected"} {
		id := u.start(w)
		u.run("run", "wait", id)
		ids = append(ids, id)
	}
	for _, id := range ids {
		for check, status := range checks(t, u.ok("run", "verify", id, "-o", "json").out) {
			require.Equal(t, "ok", status, check)
		}
		u.typing(u.ok("run", "export", id).out).ok("run", "verify", "-f", "-")
		of := u.typing(u.ok("run", "export", id, "--what", "events").out).ok("run", "verify", "-f", "-", "-o", "json").out
		require.Equal(t, id, document(t, of)["runId"])
		require.Equal(t, "skipped", checks(t, of)["snapshot"], "the file has no snapshot")
		u.typing(u.ok("run", "events", id, "-o", "json").out).ok("run", "verify", "--file", "-")
	}
}

func TestRunVerify_NamesTheEventAndTheRuleItBreaks(t *testing.T) {
	t.Parallel()
	u := member(t)
	id := u.start("noop")
	u.ok("run", "wait", id)
	lines := strings.SplitAfter(u.ok("run", "export", id, "--what", "events").out, "\n")
	file := filepath.Join(t.TempDir(), "events.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(lines[0]+strings.Join(lines[2:], "")), 0o600))

	r := u.run("run", "verify", "-f", file)
	require.Equal(t, 1, r.status, r.err)
	require.Empty(t, r.err, "the report has it already")
	require.Regexp(t, `sequence +fail +1 found`, r.out)
	require.Contains(t, r.out, "sequence: event 2: it follows event 0")
	require.Regexp(t, `node-status +skipped +events are missing`, r.out)

	r = u.run("run", "verify", "-f", file, "-o", "json")
	require.Equal(t, 1, r.status)
	require.Equal(t, false, document(t, r.out)["ok"])
	require.Equal(t, "fail", checks(t, r.out)["sequence"])
	require.Equal(t, "2\n", u.run("run", "verify", "-f", file, "-o", "jsonl", "--query", ".checks[].findings[]?.sequence").out)

	screen, status := terminal(t, u, 80, "run", "verify", "-f", file)
	require.Equal(t, 1, status)
	require.Contains(t, screen, "\x1b[31mfail")
}

// A host whose snapshot and events disagree is detected by reading both.
func TestRunVerify_FindsASnapshotThatDiffersFromTheEvents(t *testing.T) {
	t.Parallel()
	host, err := url.Parse(shared.Host(t).HTTP)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(host)
	proxy.ModifyResponse = func(r *http.Response) error {
		b, err := io.ReadAll(r.Body)
		b = bytes.Replace(b, []byte(`"status":"failed"`), []byte(`"status":"completed"`), 1)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
		r.Header.Set("Content-Length", strconv.Itoa(len(b)))
		return err
	}
	liar := httptest.NewServer(proxy)
	t.Cleanup(liar.Close)
	u := member(t)
	id := u.start("fail")
	u.run("run", "wait", id)
	r := u.run("run", "verify", id, "--url", liar.URL)
	require.Equal(t, 1, r.status, r.err)
	require.Contains(t, r.out, `snapshot: status: the events have "failed", the snapshot has "completed"`)
}

// A run that ends between two requests is not a failure of its host.
func TestRunVerify_ReadsAnOpenRunAgain(t *testing.T) {
	t.Parallel()
	host, err := url.Parse(shared.Host(t).HTTP)
	require.NoError(t, err)
	var polls atomic.Int32
	proxy := httputil.NewSingleHostReverseProxy(host)
	proxy.ModifyResponse = func(r *http.Response) error {
		if !strings.HasSuffix(r.Request.URL.Path, "/events/poll") || polls.Add(1) > 1 {
			return nil
		}
		var page map[string]any
		if err := json.NewDecoder(r.Body).Decode(&page); err != nil {
			return err
		}
		events := page["events"].([]any)
		page["events"], page["isComplete"], page["isTerminal"], page["runStatus"] = events[:len(events)-1], false, false, "running"
		b, err := json.Marshal(page)
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
		r.Header.Set("Content-Length", strconv.Itoa(len(b)))
		return err
	}
	early := httptest.NewServer(proxy)
	t.Cleanup(early.Close)
	u := member(t)
	id := u.start("noop")
	u.ok("run", "wait", id)
	r := u.ok("run", "verify", id, "--url", early.URL, "-o", "json")
	require.InDelta(t, 4, document(t, r.out)["events"], 0)
	require.Equal(t, "ok", checks(t, r.out)["snapshot"])
	require.EqualValues(t, 2, polls.Load())
}

func TestRunVerify_ReportsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	u := member(t)
	for name, tc := range map[string]struct {
		args   []string
		in     string
		status int
	}{
		"neither":      {[]string{"run", "verify"}, "", 2},
		"both":         {[]string{"run", "verify", "RUN", "-f", "-"}, "", 2},
		"no file":      {[]string{"run", "verify", "-f", "nowhere.json"}, "", 2},
		"no JSON":      {[]string{"run", "verify", "-f", "-"}, "hello", 2},
		"no events":    {[]string{"run", "verify", "-f", "-"}, `{"a":1}`, 2},
		"nothing":      {[]string{"run", "verify", "-f", "-"}, "", 2},
		"no such run":  {[]string{"run", "verify", "run_unknown"}, "", 5},
		"a bad --file": {[]string{"run", "verify", "-f", t.TempDir()}, "", 2},
	} {
		r := u.typing(tc.in).run(tc.args...)
		require.Equal(t, tc.status, r.status, "%s: %s", name, r.err)
		require.Empty(t, r.out, name)
	}
}
