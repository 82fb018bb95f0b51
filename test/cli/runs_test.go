package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/freeport"
	"waybill.dev/waybill/test/harness"
)

// Standard output has only JSON, standard error the messages, and the exit status is the run's
// outcome.
func TestL2a_StartWaitsAndEndsAsTheRunDid(t *testing.T) {
	t.Parallel()
	u := member(t)
	file := filepath.Join(t.TempDir(), "in.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"text":"hello"}`), 0o600))
	for _, tc := range []struct {
		args   []string
		in     string
		status int
		want   string
	}{
		{[]string{"echo", "--input", "@" + file}, "", 0, "completed"},
		{[]string{"echo", "--input", "-"}, `{"text":"piped"}`, 0, "completed"},
		{[]string{"echo", "--set", "text=set"}, "", 0, "completed"},
		{[]string{"fail"}, "", 1, "failed"},
		{[]string{"approve"}, "", 3, "waiting-approval"},
		{[]string{"clarify"}, "", 3, "waiting-input"},
	} {
		r := u.typing(tc.in).run(append([]string{"run", "start", "--wait", "-o", "json"}, tc.args...)...)
		require.Equal(t, tc.status, r.status, "%v: %s", tc.args, r.err)
		v := document(t, r.out)
		require.Equal(t, tc.want, v["status"], tc.args)
		require.Contains(t, r.err, v["runId"], "the id must be printed while the run is in progress")
	}
	r := u.typing(`{"text":"piped"}`).ok("run", "start", "echo", "--input", "-", "--set", "text=won", "--wait", "--query", ".outputs.text")
	require.JSONEq(t, `"won"`, r.out)
}

func TestL2a_ARunThatCannotStartReportsWhy(t *testing.T) {
	t.Parallel()
	u := member(t)
	for _, tc := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"ghost"}, 5, "workflow_not_found"},
		{[]string{"echo"}, 6, "validation_error"},
		{[]string{"echo", "--input", "[1]"}, 2, "--input: want a JSON object"},
		{[]string{"echo", "--input", "@/no/such/file"}, 2, "no such file"},
		{[]string{"echo", "--set", "text"}, 2, "must be NAME=VALUE"},
	} {
		r := u.run(append([]string{"run", "start"}, tc.args...)...)
		require.Equal(t, tc.status, r.status, "%v: %s", tc.args, r.err)
		require.Contains(t, r.err, tc.want)
		require.Empty(t, r.out, "standard output must have only data")
	}
	r := u.run("run", "start", "ghost", "-o", "json")
	require.Empty(t, r.out)
	v := document(t, r.err)
	require.Equal(t, "workflow_not_found", v["error"])
	require.EqualValues(t, 5, v["exit"])
	require.NotEmpty(t, v["hint"])
}

// One line per event with its main content, without escape codes.
func TestL2b_WatchInAPipeIsALineForEachEvent(t *testing.T) {
	t.Parallel()
	u := member(t)
	id := u.start("fail")
	r := u.run("run", "watch", id)
	require.Equal(t, 1, r.status)
	require.NotContains(t, r.out, "\x1b")
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	require.Len(t, lines, 4)
	for i, want := range []string{"run.started", "node.started", "node.failed", "run.failed"} {
		fields := strings.Fields(lines[i])
		require.Equal(t, strconv.Itoa(i), fields[0])
		require.Equal(t, want, fields[2])
	}
	require.Contains(t, lines[0], "workflow fail")
	require.Contains(t, lines[2], "conformance_test_failure: Intentional conformance failure")

	require.Equal(t, 0, u.run("run", "watch", u.start("noop"), "-o", "json").status)
	require.Equal(t, 5, u.run("run", "watch", "run_none").status)
}

// The host is killed and restarted while a run is watched. No event is missing or repeated, and the
// end is the run's.
func TestL2b_WatchSurvivesARestart(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, starts a real process: run without -short")
	}
	addr := freeport.Addr(t) // the restarted host needs the same address
	h := harness.Start(t, "--http-addr", addr, "--api-key", testKey+"=acme:*", "--lease", "1s")
	require.NoError(t, h.Deploy(workflows, testKey))
	u := at(t, h.HTTP, testKey)
	id := u.waiting("approve")

	ctx, cancel := context.WithTimeout(t.Context(), cmdTimeout)
	defer cancel()
	watch := u.command(ctx, "run", "watch", id, "-o", "jsonl")
	out, err := watch.StdoutPipe()
	require.NoError(t, err)
	var messages strings.Builder
	watch.Stderr = &messages
	require.NoError(t, watch.Start())
	wait := u.command(ctx, "run", "wait", id, "--to-end", "-o", "json")
	var ended strings.Builder
	wait.Stdout = &ended
	waits, err := wait.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, wait.Start())
	output := bufio.NewReader(waits)
	events := bufio.NewScanner(out)
	seen := []int{}
	next := func() bool {
		if !events.Scan() {
			return false
		}
		var e struct{ Sequence int }
		require.NoError(t, json.Unmarshal(events.Bytes(), &e), events.Text())
		seen = append(seen, e.Sequence)
		return true
	}
	for range 5 { // all events before the answer
		require.True(t, next())
	}
	_, err = output.ReadString('\n') // the question: the watch has reached it
	require.NoError(t, err)
	h.Kill()
	h.Launch()
	u.ok("interrupt", "answer", id, "--action", "accept")
	for next() {
	}
	require.NoError(t, watch.Wait(), messages.String())
	for i, seq := range seen {
		require.Equal(t, i, seq, "sequences %v", seen)
	}
	require.Len(t, seen, 10)
	require.Contains(t, messages.String(), "reconnecting")
	rest, err := io.ReadAll(output)
	require.NoError(t, err)
	require.NoError(t, wait.Wait(), "the question must survive as well: %s", rest)
	require.Equal(t, "completed", document(t, ended.String())["status"])
}

func TestL2c_TheSameKeyStartsOneRun(t *testing.T) {
	t.Parallel()
	u := member(t)
	key := unique("l2c")
	first := u.ok("run", "start", "noop", "--key", key, "-o", "name")
	second := u.ok("run", "start", "noop", "--key", key, "-o", "name")
	require.Equal(t, first.out, second.out)
	require.NotContains(t, first.err, "replayed")
	require.Contains(t, second.err, "replayed")
	require.Equal(t, 6, u.run("run", "start", "fail", "--key", key).status, "another request with the same key")
}

func TestL2d_RunsArePausedResumedAndCancelled(t *testing.T) {
	t.Parallel()
	u := member(t)
	id := u.start("wait")
	require.Contains(t, u.ok("run", "pause", id, "--drain", "immediate").out, "paused")
	paused := u.run("run", "wait", id)
	require.Equal(t, 3, paused.status, "a user has to resume it")
	require.Contains(t, paused.err, "resume")
	require.Equal(t, 6, u.run("run", "pause", id).status)
	require.Contains(t, u.ok("run", "resume", id).out, "running")
	require.Equal(t, 7, u.run("run", "wait", id, "--for", "300ms").status, "it is still running")
	u.ok("run", "cancel", id, "--reason", "enough")
	r := u.run("run", "wait", id)
	require.Equal(t, 1, r.status)
	require.Contains(t, r.out, "cancelled")
	require.Contains(t, u.ok("run", "cancel", id).out, "cancelled", "twice is once")
}

func TestL2e_SeveralRunsAreCancelledOnlyWhenConfirmed(t *testing.T) {
	t.Parallel()
	u := member(t)
	tag := unique("l2e")
	a, b := u.start("wait", "--tag", tag), u.start("wait", "--tag", tag)
	r := u.run("run", "cancel", "--tag", tag)
	require.Equal(t, 2, r.status, "a pipe cannot confirm")
	require.Contains(t, r.err, "--yes")
	dry := u.ok("run", "cancel", "--tag", tag, "--dry-run", "-o", "name")
	require.ElementsMatch(t, []string{a, b}, strings.Fields(dry.out))
	done := u.ok("run", "cancel", "--tag", tag, "--yes", "-o", "json")
	require.Len(t, document(t, done.out)["results"], 2)
	require.Equal(t, 6, u.run("run", "cancel", a, "run_none", "--yes").status, "one could not be cancelled")
}

func TestL2e_RunsAreErasedOnlyWhenTheyHaveEndedAndThatIsConfirmed(t *testing.T) {
	t.Parallel()
	u := member(t)
	tag := unique("l2e")
	a, b := u.start("echo", "--set", "text=x", "--tag", tag), u.start("echo", "--set", "text=x", "--tag", tag)
	active := u.start("wait", "--tag", tag)
	for _, id := range []string{a, b} {
		u.ok("run", "wait", id)
	}
	r := u.run("run", "delete", a)
	require.Equal(t, 2, r.status, "a pipe cannot confirm")
	require.Contains(t, r.err, "--yes")
	require.Equal(t, 2, u.run("run", "delete").status)
	dry := u.ok("run", "delete", "--tag", tag, "--dry-run", "-o", "name")
	require.ElementsMatch(t, []string{a, b}, strings.Fields(dry.out))
	r = u.run("run", "delete", a, active, "--yes")
	require.Equal(t, 6, r.status, "one has not ended")
	require.Contains(t, r.out, "conflict")
	require.Contains(t, u.run("run", "get", a).err, "run_not_found")
	u.ok("run", "delete", a, "--yes")
	r = u.run("run", "delete", active, "--yes")
	require.NotZero(t, r.status)
	require.Contains(t, r.err, "cancel it")
	done := u.ok("run", "delete", "--tag", tag, "--yes", "-o", "json")
	require.Len(t, document(t, done.out)["results"], 1)
	require.Equal(t, active, strings.TrimSpace(u.ok("run", "list", "--tag", tag, "-o", "name").out))
}

func TestL2f_ForksAndTheirDifferences(t *testing.T) {
	t.Parallel()
	u := member(t)
	id := u.start("echo", "--set", "text=x")
	u.ok("run", "wait", id)
	replay := u.ok("run", "fork", id, "--wait", "-o", "name")
	require.Contains(t, replay.err, "replay")
	same := u.ok("run", "diff", id, strings.TrimSpace(replay.out))
	require.Equal(t, "no differences\n", same.out)
	other := u.start("fail")
	require.Equal(t, 1, u.run("run", "wait", other).status)
	differ := u.run("run", "diff", id, other, "-o", "json")
	require.Equal(t, 1, differ.status)
	require.NotNil(t, document(t, differ.out)["divergedAtSeq"])
	require.Equal(t, 1, u.run("run", "diff", id, other).status)
	branch := u.ok("run", "fork", id, "--from", "1")
	require.Contains(t, branch.err, "effects from event 1 on are executed again")
	require.Equal(t, 6, u.run("run", "fork", id, "--from", "999").status)
}

func TestL2g_ListsFollowTheFlags(t *testing.T) {
	t.Parallel()
	u := member(t)
	tag := unique("l2g")
	id := u.start("noop", "--tag", tag)
	u.ok("run", "wait", id)
	table := u.ok("run", "list", "--tag", tag).out
	require.Regexp(t, `^RUN +STATUS +WORKFLOW +AGE +TOOK +DETAIL\n`+id+` +completed +noop `, table)
	require.Equal(t, id+"\n", u.ok("run", "list", "--tag", tag, "-o", "name").out)
	require.Equal(t, "STATUS     RUN\ncompleted  "+id+"\n", u.ok("run", "list", "--tag", tag, "--columns", "status,run").out)
	require.Equal(t, 2, u.run("run", "list", "--columns", "ghost").status)
	require.Contains(t, u.ok("run", "list", "--tag", tag+"-none").err, "no matching runs")
	require.Contains(t, u.ok("run", "get", id).out, "completed")
	more := u.ok("run", "list", "--limit", "1")
	require.Contains(t, more.err, "--cursor")
}

// --filter finds what the API finds; a host without filters gives an error.
func TestL2g_AFilterIsTheHosts(t *testing.T) {
	t.Parallel()
	u := member(t)
	tag := unique("l2g")
	id := u.start("fail", "--tag", tag)
	require.Equal(t, 1, u.run("run", "wait", id).status)
	api := shared.Host(t).Client(testKey)
	a, err := api.Do(t.Context(), http.MethodGet, "/v1/runs?limit=1&filter=%3A", "")
	require.NoError(t, err)
	if a.Status == http.StatusOK {
		for _, args := range [][]string{{"run", "list"}, {"run", "cancel", "--yes"}} {
			r := u.run(append(args, "--filter", "status:failed")...)
			require.Equal(t, 6, r.status)
			require.Contains(t, r.err, "the host does not support --filter")
		}
		return
	}
	filter := "status:failed since:1h tag:" + tag
	a, err = api.Do(t.Context(), http.MethodGet, "/v1/runs?filter="+url.QueryEscape(filter), "")
	require.NoError(t, err)
	var page struct{ Runs []struct{ RunID string } }
	require.NoError(t, a.JSON(&page))
	require.Len(t, page.Runs, 1)
	require.Equal(t, id, page.Runs[0].RunID)
	require.Equal(t, id+"\n", u.ok("run", "list", "--filter", filter, "-o", "name").out)
	require.Equal(t, 2, u.run("run", "list", "--filter", "ghost:x").status)
}

func TestL2h_ExportsHaveTheHostsDataAndAreReadableByTheirOwner(t *testing.T) {
	t.Parallel()
	u := member(t)
	id := u.start("echo", "--set", "text=x")
	u.ok("run", "wait", id)
	file := filepath.Join(t.TempDir(), "bundle.json")
	r := u.ok("run", "export", id, "--file", file)
	require.Contains(t, r.err, "redaction: ")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, id, document(t, string(b))["run"].(map[string]any)["runId"])
	require.Equal(t, 2, u.run("run", "export", id, "--file", file).status, "an existing file is not overwritten")
	events := u.ok("run", "export", id, "--what", "events").out
	require.Equal(t, u.ok("run", "events", id, "-o", "jsonl").out, events)
	require.Len(t, strings.Split(strings.TrimSpace(events), "\n"), 4)
}

func TestL2i_CtrlCEndsWith130(t *testing.T) {
	t.Parallel()
	u := member(t)
	id := u.start("wait")
	ctx, cancel := context.WithTimeout(t.Context(), cmdTimeout)
	defer cancel()
	cmd := u.command(ctx, "run", "watch", id)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n') // it has started
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	err = cmd.Wait()
	var ended *exec.ExitError
	require.ErrorAs(t, err, &ended)
	require.Equal(t, 130, ended.ExitCode())
}

// Runs that have the value come in its order, the others last and newest first, page by page.
func TestRunList_SortsAsTheHostDoes(t *testing.T) {
	t.Parallel()
	u := member(t)
	var ids []string
	for range 3 {
		ids = append(ids, document(t, u.ok("run", "start", "noop", "--tag", "sorted", "--wait", "-o", "json").out)["runId"].(string)) //nolint:forcetypeassert // an id
	}
	waits := document(t, u.run("run", "start", "approve", "--tag", "sorted", "--wait", "-o", "json").out)["runId"].(string) //nolint:forcetypeassert // an id
	list := func(args ...string) []string {
		t.Helper()
		return strings.Fields(u.ok(append([]string{"run", "list", "--tag", "sorted", "-o", "name"}, args...)...).out)
	}
	require.Equal(t, []string{ids[0], ids[1], ids[2], waits}, list("--order", "asc"))
	require.Equal(t, []string{waits, ids[2], ids[1], ids[0]}, list("--sort", "waitingSince", "--order", "asc"))
	require.Equal(t, []string{waits}, list("--filter", "waiting:any"))
	require.Equal(t, waits, list("--sort", "duration", "--all")[3], "it has not ended")
	require.Contains(t, u.ok("run", "list", "--tag", "sorted", "--sort", "waitingSince").out, "WAITING")
	require.Contains(t, u.ok("run", "list", "--tag", "sorted", "-o", "wide").out, "TOKENS")

	first := u.ok("run", "list", "--tag", "sorted", "--sort", "lastNode", "--limit", "2")
	_, cursor, found := strings.Cut(first.err, "--cursor ")
	require.True(t, found, first.err)
	require.Contains(t, first.err, `--sort "lastNode"`, "the command for the next page keeps the order")
	require.Len(t, list("--sort", "lastNode", "--cursor", strings.TrimSpace(cursor)), 2)
	r := u.run("run", "list", "--sort", "bogus")
	require.Equal(t, 2, r.status)
	require.Contains(t, r.err, "waitingSince")
	require.Equal(t, 2, u.run("run", "list", "--sort", "cost", "--cursor", strings.TrimSpace(cursor)).status)
}
