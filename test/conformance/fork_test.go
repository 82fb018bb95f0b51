package conformance

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	events, err := c.Finish(within(t, patience), f.RunID)
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
			again, err := c.Finish(within(t, patience), f.RunID)
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
	got, err := c.Finish(within(t, patience), f.RunID)
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
	got, err := c.Finish(within(t, patience), f.RunID)
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
	events, err := c.Finish(within(t, patience), id)
	require.NoError(t, err)
	for from := range events {
		require.Equal(t, common(events), common(forkEvents(t, c, id, fmt.Sprintf(`{"mode":"replay","fromSeq":%d}`, from))), "from %d", from)
	}
	for from := range events {
		f := fork(t, c, id, fmt.Sprintf(`{"mode":"branch","fromSeq":%d}`, from))
		s := await(t, c, f.RunID, patience, "waiting-approval", "completed")
		if s.Status == "waiting-approval" {
			require.Equal(t, http.StatusOK, answer(t, c, f.RunID, "gate", `{"action":"accept"}`).Status)
		}
		got, err := c.Finish(within(t, patience), f.RunID)
		require.NoError(t, err)
		require.Equal(t, strings.Join(names(events), " "), strings.Join(names(got), " "), "from %d", from)
	}
}

// cancelled starts a run, cancels it at an event, and returns its id and events.
func cancelled(t *testing.T, c *harness.Client, body, at string) (runID string, all []harness.Event) {
	t.Helper()
	id := create(t, c, body).RunID
	require.Eventually(t, func() bool {
		return strings.Contains(string(do(t, c, http.MethodGet, "/v1/runs/"+id+"/events/poll?timeout=1", "").Body), at)
	}, 30*time.Second, 10*time.Millisecond)
	require.Equal(t, http.StatusOK, do(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel", `{"reason":"enough"}`).Status)
	events, err := c.Finish(within(t, patience), id)
	require.NoError(t, err)
	return id, events
}

// OpenWOP host contract §7.1, §7.2: a replay repeats no cancellation. It executes again what the
// cancellation ended, and fails what has no recorded outcome.
func TestFork_AReplayOfACancelledRunExecutesAgain(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, events := cancelled(t, c, `{"workflowId":"held","inputs":{"delayMs":60000}}`, "node.started")
	require.Equal(t, "run.started node.started node.cancelled run.cancelled", strings.Join(names(events), " "))
	want := "run.started node.started node.completed node.started node.failed run.failed"
	for from := range 3 {
		got := forkEvents(t, c, id, fmt.Sprintf(`{"mode":"replay","fromSeq":%d}`, from))
		require.Equal(t, want, strings.Join(names(got), " "), "from %d", from)
		require.Equal(t, common(events[:2]), common(got[:2]))
		require.Equal(t, "effect", got[4].NodeID)
		var failed struct{ Error struct{ Code string } }
		require.NoError(t, json.Unmarshal(got[4].Payload, &failed))
		require.Equal(t, "replay_source_missing", failed.Error.Code)
		require.NotContains(t, names(got), "replay.diverged")
	}
	first := forkEvents(t, c, id, `{"mode":"replay"}`)
	f := fork(t, c, id, `{"mode":"replay"}`)
	second, err := c.Finish(within(t, patience), f.RunID)
	require.NoError(t, err)
	require.Equal(t, common(first), common(second), "every replay has the same events")
	require.Equal(t, "replay_source_missing", read(t, c, f.RunID).Error.Code)
	require.Equal(t, common(second), common(forkEvents(t, c, f.RunID, `{"mode":"replay"}`)), "a replay of the replay")
	// The copied history has the beginning of the cancellation, so the replay completes it.
	require.Equal(t, common(events), common(forkEvents(t, c, id, `{"mode":"replay","fromSeq":3}`)))

	branch := forkEvents(t, c, id, `{"mode":"branch","fromSeq":0,"runOptionsOverlay":{"tags":["again"],"configurable":{"runTimeoutMs":200}}}`)
	require.Equal(t, "run.failed", branch[len(branch)-1].Type, "a branch waits for real")
}

// A replay of a run that was cancelled while a person was asked asks, too.
func TestFork_AReplayOfACancelledQuestionAsksAgain(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, _ := suspended(t, c, "approve", "waiting-approval")
	require.Equal(t, http.StatusOK, do(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel", "{}").Status)
	events, err := c.Finish(within(t, patience), id)
	require.NoError(t, err)
	f := fork(t, c, id, `{"mode":"replay"}`)
	await(t, c, f.RunID, patience, "waiting-approval")
	require.Equal(t, http.StatusOK, answer(t, c, f.RunID, "gate", `{"action":"accept"}`).Status)
	got, err := c.Finish(within(t, patience), f.RunID)
	require.NoError(t, err)
	require.Equal(t, common(events[:len(events)-2]), common(got[:len(events)-2]))
	require.Equal(t, "completed", read(t, c, f.RunID).Status)
}

// Votes count in a replay of a run that was cancelled while its gate was open.
func TestFork_AReplayOfACancelledGateHasItsVotes(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, _ := suspended(t, c, "approve-three", "waiting-approval")
	for _, voter := range []string{"ann", "bob"} {
		require.Equal(t, http.StatusOK, answer(t, c, id, "gate", `{"action":"accept","voter":"`+voter+`"}`).Status)
	}
	require.Equal(t, http.StatusOK, do(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel", "{}").Status)
	await(t, c, id, patience, "cancelled")
	f := fork(t, c, id, `{"mode":"replay"}`)
	await(t, c, f.RunID, patience, "waiting-approval")
	require.Equal(t, http.StatusOK, answer(t, c, f.RunID, "gate", `{"action":"accept","voter":"eve"}`).Status)
	await(t, c, f.RunID, patience, "completed")
}

// The child of a run belongs to that run: a replay fails what the child had not ended.
func TestFork_AReplayOfACancelledParentFailsItsChild(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id := create(t, c, `{"workflowId":"parent-of-approve"}`).RunID
	await(t, c, id, patience, "waiting-approval")
	for _, when := range []string{"while the child waits", "after the cancellation"} {
		got := forkEvents(t, c, id, `{"mode":"replay"}`)
		require.Equal(t, "run.started node.started node.dispatched node.suspended node.resumed node.failed run.failed", strings.Join(names(got), " "), when)
		require.Contains(t, string(got[5].Payload), "replay_source_missing")
		require.Equal(t, http.StatusOK, do(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel", "{}").Status)
		await(t, c, id, patience, "cancelled")
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
	one := keyOf(`{"provider":"OpenAI","model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"name":"a"},{"name":"b"}],"temperature":1.0}`)
	same := `{"model":"m","temperature":1,"tools":[{"name":"b"},{"name":"a"}],"messages":[{"content":"hi","role":"user"}],"provider":"openai"`
	require.Equal(t, one, keyOf(same+`}`))
	require.Equal(t, one, keyOf(same+`,"stream":true,"x-request-id":"r","traceparent":"00","tenantId":"t","runId":"r","timeoutMs":5,"retries":2,"user":"u"}`),
		"members of the transport are ignored")
	for _, other := range []string{`"seed":1`, `"stop":["x"]`, `"maxOutputTokens":1`, `"providerOptions":{"vendor.openai.logitBias":{}}`} {
		require.NotEqual(t, one, keyOf(same+`,`+other+`}`), other)
	}
	// The digest of the document that the protocol's own suite computes.
	sum := sha256.Sum256([]byte(`{"model":"m","provider":"openai","recipe":"openwop-semantic-request-v2","request":{"messages":[{"content":"hi","role":"user"}],"temperature":0.5}}`))
	require.Equal(t, hex.EncodeToString(sum[:]), keyOf(`{"provider":"openai","model":"m","messages":[{"role":"user","content":"hi"}],"temperature":0.5,"user":"u"}`))
	for body, at := range map[string]string{
		`{"model":"m"}`:                                          "/provider",
		`{"provider":"p","model":"m"}`:                           "/messages",
		`{"provider":"p","messages":[]}`:                         "/model",
		`{"provider":1,"model":"m"}`:                             "/provider",
		`{"provider":"p","model":"m","request":{"messages":[]}}`: "/messages",
		`{`: "",
	} {
		a := do(t, c, http.MethodPost, seams+"test/llm-cache-key", body)
		require.Equal(t, http.StatusBadRequest, a.Status, body)
		require.Contains(t, string(a.Body), `"invalid_argument"`)
		require.Contains(t, string(a.Body), at)
	}
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
