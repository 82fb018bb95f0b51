package conformance

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

type forked struct {
	RunID, SourceRunID, Mode, Status, EventsURL string
	FromSeq                                     *int
}

// fork forks a run that can be forked.
func fork(t *testing.T, c *harness.Client, id, body string, headers ...string) forked {
	t.Helper()
	a := do(t, c, http.MethodPost, "/v1/runs/"+id+":fork", body, headers...)
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	var f forked
	require.NoError(t, a.JSON(&f))
	require.NotEqual(t, id, f.RunID)
	require.Equal(t, id, f.SourceRunID)
	require.NotNil(t, f.FromSeq)
	require.True(t, strings.HasSuffix(f.EventsURL, "/v1/runs/"+f.RunID+"/events"), f.EventsURL)
	var shown struct{ Fork forked }
	require.NoError(t, do(t, c, http.MethodGet, "/v1/runs/"+f.RunID, "").JSON(&shown))
	require.Equal(t, forked{SourceRunID: id, Mode: f.Mode, FromSeq: f.FromSeq}, shown.Fork, "its snapshot names source, mode and sequence")
	return f
}

// forkEvents forks a run and returns the fork's events once it has ended.
func forkEvents(t *testing.T, c *harness.Client, id, body string) []harness.Event {
	t.Helper()
	f := fork(t, c, id, body)
	events, err := c.Finish(within(t, 30*time.Second), f.RunID)
	require.NoError(t, err)
	return events
}

// common returns what two replays of a run have in common.
func common(events []harness.Event) []string {
	out := make([]string, 0, len(events))
	for _, e := range events {
		out = append(out, fmt.Sprintf("%d %s@%s %s", e.Sequence, e.Type, e.NodeID, e.Payload))
	}
	return out
}

// OpenWOP host contract §7.2: forks from every event of many kinds of runs.
func TestFork_ReplaysEqualTheirSource(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	program(t, c, "mocked-node", `{"content":"no JSON"}`, `{"content":"{\"ok\":true}"}`)
	for _, body := range []string{
		`{"workflowId":"noop","inputs":{"x":1},"tags":["t"],"metadata":{"m":1}}`,
		`{"workflowId":"three"}`,
		`{"workflowId":"fail"}`,
		`{"workflowId":"wait-two","inputs":{"delayMs":300}}`,
		`{"workflowId":"mocked"}`,
		`{"workflowId":"needy"}`,
		`{"workflowId":"nobody"}`,
		`{"workflowId":"three","configurable":{"recursionLimit":2}}`,
		`{"workflowId":"wait","configurable":{"runTimeoutMs":150}}`,
		`{"workflowId":"talk","inputs":{"text":"hello"}}`,
		talk(0, "a", "b", "c"),
	} {
		id, events := run(t, c, body)
		for from := range events {
			f := fork(t, c, id, fmt.Sprintf(`{"mode":"replay","fromSeq":%d}`, from))
			require.Equal(t, from, *f.FromSeq)
			again, err := c.Finish(within(t, 30*time.Second), f.RunID)
			require.NoError(t, err)
			require.Equal(t, common(events), common(again), "%s from %d", body, from)
			require.Equal(t, read(t, c, id).Status, read(t, c, f.RunID).Status)
		}
	}
}

// OpenWOP host contract §7.1, table.
func TestFork_RejectsInvalidForks(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id, events := run(t, c, `{"workflowId":"three"}`)
	for _, tc := range []struct {
		body   string
		status int
		code   string
	}{
		{`{}`, 400, "validation_error"},
		{`{"mode":"rewind"}`, 400, "validation_error"},
		{`{"mode":"replay","fromSeq":-1}`, 400, "validation_error"},
		{`{"mode":"replay","fromSeq":1.5}`, 400, "validation_error"},
		{`{"mode":"replay","fromSeq":"1"}`, 400, "validation_error"},
		{`{"mode":"branch"}`, 400, "validation_error"},
		{`{"mode":"replay","more":1}`, 400, "validation_error"},
		{`{"mode":"replay","runOptionsOverlay":{"tags":["a"]}}`, 400, "validation_error"},
		{`{"mode":"replay","runOptionsOverlay":{"tags":[]}}`, 400, "validation_error"},
		{`{"mode":"branch","fromSeq":0,"runOptionsOverlay":{"inputs":{}}}`, 400, "validation_error"},
		{`{"mode":"branch","fromSeq":0,"runOptionsOverlay":[]}`, 400, "validation_error"},
		{`{"mode":"branch","fromSeq":0,"runOptionsOverlay":{"tags":"a"}}`, 400, "validation_error"},
		{`{"mode":"branch","fromSeq":0,"runOptionsOverlay":{"configurable":{"recursionLimit":0}}}`, 400, "validation_error"},
		{`{"mode":"branch","fromSeq":0,"runOptionsOverlay":{"configurable":{"ai.provider":"ghost"}}}`, 400, "validation_error"},
		{`{"mode":"branch","fromSeq":0,"runOptionsOverlay":{"configurable":{"mockProvider":{"id":"stream-text"}}}}`, 403, "mock_provider_forbidden"},
		{fmt.Sprintf(`{"mode":"replay","fromSeq":%d}`, len(events)), 422, "fork_invalid_seq"},
		{`{"mode":"branch","fromSeq":100000}`, 422, "fork_invalid_seq"},
	} {
		a := do(t, c, http.MethodPost, "/v1/runs/"+id+":fork", tc.body)
		require.Equal(t, tc.status, a.Status, "%s: %s", tc.body, a.Body)
		require.Equal(t, tc.code, a.Code(), tc.body)
	}
	fork(t, c, id, `{"mode":"replay","runOptionsOverlay":{}}`)
	const body = `{"mode":"replay"}`
	require.Equal(t, "run_not_found", do(t, c, http.MethodPost, "/v1/runs/ghost:fork", body).Code())
	require.Equal(t, "run_not_found", do(t, client(t, otherKey), http.MethodPost, "/v1/runs/"+id+":fork", body).Code(), "of another tenant")
	require.Equal(t, http.StatusUnauthorized, do(t, client(t, ""), http.MethodPost, "/v1/runs/"+id+":fork", body).Status)
	for key, lacks := range map[string]string{readerKey: "runs:create", writerKey: "runs:read"} {
		a := do(t, client(t, key), http.MethodPost, "/v1/runs/"+id+":fork", body)
		require.Equal(t, http.StatusForbidden, a.Status)
		require.Contains(t, string(a.Body), `"scopeRequired":"`+lacks+`"`)
	}
}

// OpenWOP host contract §2.1: a repeated fork returns the first one.
func TestFork_IsCreatedOncePerKey(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id, _ := run(t, c, `{"workflowId":"three"}`)
	other, _ := run(t, c, `{"workflowId":"three"}`)
	first := fork(t, c, id, `{"mode":"branch","fromSeq":2}`, "Idempotency-Key", "f-"+id)
	a := do(t, c, http.MethodPost, "/v1/runs/"+id+":fork", `{"fromSeq":2.0,"mode":"branch"}`, "Idempotency-Key", "f-"+id)
	if a.Status == http.StatusBadRequest { // 2.0 is another spelling that may be rejected
		a = do(t, c, http.MethodPost, "/v1/runs/"+id+":fork", `{"fromSeq":2,"mode":"branch"}`, "Idempotency-Key", "f-"+id)
	}
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	require.Equal(t, "true", a.Header.Get("openwop-Idempotent-Replay"))
	var again forked
	require.NoError(t, a.JSON(&again))
	require.Equal(t, first, again)
	for path, body := range map[string]string{id: `{"mode":"branch","fromSeq":3}`, other: `{"mode":"branch","fromSeq":2}`} {
		a := do(t, c, http.MethodPost, "/v1/runs/"+path+":fork", body, "Idempotency-Key", "f-"+id)
		require.Equal(t, "idempotency_key_mismatch", a.Code())
		require.NotContains(t, string(a.Body), first.RunID)
	}
	created := create(t, c, `{"workflowId":"noop"}`, "Idempotency-Key", "f-"+id)
	require.NotEqual(t, first.RunID, created.RunID, "the key of another operation")
}

// OpenWOP host contract §7.2, overlay.
func TestFork_ABranchAcceptsAnOverlay(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id, events := run(t, c, `{"workflowId":"three","tags":["a"],"metadata":{"m":1},"configurable":{"recursionLimit":3,"x":1}}`)
	f := fork(t, c, id, `{"mode":"branch","fromSeq":3,"runOptionsOverlay":{"configurable":{"recursionLimit":2},"tags":[],"metadata":{"n":2}}}`)
	got, err := c.Finish(within(t, 30*time.Second), f.RunID)
	require.NoError(t, err)
	require.Equal(t, common(events[:3]), common(got[:3]))
	require.Equal(t, "run.started node.started node.completed node.started node.completed cap.breached run.failed", strings.Join(names(got), " "))
	s := read(t, c, f.RunID)
	require.Empty(t, s.Tags)
	require.JSONEq(t, `{"n":2}`, string(s.Metadata))
	require.JSONEq(t, `{"recursionLimit":2,"x":1}`, string(s.Configurable))
	for from := range events {
		branch := forkEvents(t, c, id, fmt.Sprintf(`{"mode":"branch","fromSeq":%d}`, from))
		require.Equal(t, common(events), common(branch), "from %d", from)
	}
}

// The fork's events are its own: new ids, its run id, each once.
func TestFork_CopiesHistoryAsItsOwn(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id, events := run(t, c, `{"workflowId":"three"}`)
	f := fork(t, c, id, `{"mode":"replay","fromSeq":5}`)
	got, err := c.Finish(within(t, 30*time.Second), f.RunID)
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, e := range events {
		seen[e.EventID] = true
	}
	for i, e := range got {
		require.Equal(t, f.RunID, e.RunID)
		require.Equal(t, i, e.Sequence)
		require.False(t, seen[e.EventID], e.EventID)
		seen[e.EventID] = true
	}
	replay := forkEvents(t, c, f.RunID, `{"mode":"replay","fromSeq":2}`)
	require.Equal(t, common(got), common(replay), "a replay of a replay")
}

// Replays of a run with a question get its recorded answer; a branch from before the question opens
// it again.
func TestFork_OfAnsweredRuns(t *testing.T) {
	t.Parallel()
	c := client(t, liveKey)
	id, _ := suspended(t, c, "approve", "waiting-approval")
	require.Equal(t, http.StatusOK, answer(t, c, id, "gate", `{"action":"accept"}`).Status)
	events, err := c.Finish(within(t, 30*time.Second), id)
	require.NoError(t, err)
	for from := range events {
		require.Equal(t, common(events), common(forkEvents(t, c, id, fmt.Sprintf(`{"mode":"replay","fromSeq":%d}`, from))), "from %d", from)
	}
	for from := range events {
		f := fork(t, c, id, fmt.Sprintf(`{"mode":"branch","fromSeq":%d}`, from))
		s := await(t, c, f.RunID, 30*time.Second, "waiting-approval", "completed")
		if s.Status == "waiting-approval" {
			require.Equal(t, http.StatusOK, answer(t, c, f.RunID, "gate", `{"action":"accept"}`).Status)
		}
		got, err := c.Finish(within(t, 30*time.Second), f.RunID)
		require.NoError(t, err)
		require.Equal(t, strings.Join(names(events), " "), strings.Join(names(got), " "), "from %d", from)
	}
}

// OpenWOP host contract §7.3 and appendix A.
func TestSeam_CacheKey(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	keyOf := func(body string) string {
		var got struct{ CacheKey string }
		askSeam(t, c, http.MethodPost, "test/llm-cache-key", body, &got)
		require.Regexp(t, `^[0-9a-f]{64}$`, got.CacheKey)
		return got.CacheKey
	}
	one := keyOf(`{"provider":"OpenAI","model":"m","request":{"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"a"},{"name":"b"}],"temperature":1.0}}`)
	require.Equal(t, one, keyOf(`{"model":"m","request":{"temperature":1,"tools":[{"name":"b"},{"name":"a"}],"stream":true,"messages":[{"content":"hi","role":"user"}]},"provider":"openai"}`))
	require.NotEqual(t, one, keyOf(`{"provider":"openai","model":"m","request":{"messages":[{"role":"user","content":"hi"}]}}`))
	a := do(t, c, http.MethodPost, seams+"test/llm-cache-key", `{"model":"m"}`)
	require.Equal(t, http.StatusBadRequest, a.Status)
}

// The time to accept a fork does not depend on the length of its source.
func TestFork_OfALongRunIsAcceptedImmediately(t *testing.T) {
	t.Parallel()
	c := shared.Host(t).Client(testKey) // skip the schema checks of so many events
	tokens := make([]string, 2000)
	for i := range tokens {
		tokens[i] = "t"
	}
	id, events := run(t, c, talk(0, tokens...))
	require.Greater(t, len(events), len(tokens))
	for _, mode := range []string{"replay", "branch"} {
		begin := time.Now()
		f := fork(t, c, id, fmt.Sprintf(`{"mode":%q,"fromSeq":%d}`, mode, len(events)-3))
		took := time.Since(begin)
		t.Logf("%s of %d events accepted in %s", mode, len(events), took)
		require.Less(t, took, 10*time.Second) // a few milliseconds on an idle machine
		begin = time.Now()
		got, err := c.Finish(within(t, 60*time.Second), f.RunID)
		require.NoError(t, err)
		t.Logf("%s ended and read after %s", mode, time.Since(begin))
		if mode == "replay" {
			require.Equal(t, common(events), common(got))
		}
	}
}
