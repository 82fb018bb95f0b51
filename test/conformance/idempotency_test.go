package conformance

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// replayHeader has Go's canonical case; the host sends the protocol's.
const replayHeader = "openwop-Idempotent-Replay"

func TestKey_ReturnsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	body := `{"workflowId":"noop","inputs":{"a":1,"b":[2]}}`
	first := do(t, c, http.MethodPost, "/v1/runs", body, "Idempotency-Key", "again")
	require.Equal(t, http.StatusCreated, first.Status)
	require.Empty(t, first.Header.Get(replayHeader))
	for _, same := range []string{body, `{ "inputs": {"b":[2.0], "a":1e0}, "workflowId":"noop" }`} {
		a := do(t, c, http.MethodPost, "/v1/runs", same, "Idempotency-Key", "again")
		require.Equal(t, http.StatusCreated, a.Status, "the original status")
		require.Equal(t, "true", a.Header.Get(replayHeader))
		require.Equal(t, string(first.Body), string(a.Body))
	}
}

func TestKey_IdentifiesOneRequest(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id := create(t, c, `{"workflowId":"noop"}`, "Idempotency-Key", "one").RunID
	for _, other := range []string{`{"workflowId":"three"}`, `{"workflowId":"noop","inputs":{"x":1}}`, `{"workflowId":"noop","tags":["x"]}`} {
		a := do(t, c, http.MethodPost, "/v1/runs", other, "Idempotency-Key", "one")
		require.Equal(t, http.StatusConflict, a.Status)
		require.Equal(t, "idempotency_key_mismatch", a.Code())
		require.NotContains(t, string(a.Body), id, "the earlier run is not named")
	}
}

func TestKey_BelongsToItsTenantAndOperation(t *testing.T) {
	t.Parallel()
	mine := create(t, client(t, testKey), `{"workflowId":"noop"}`, "Idempotency-Key", "tenants").RunID
	theirs := create(t, client(t, otherKey), `{"workflowId":"noop"}`, "Idempotency-Key", "tenants").RunID
	require.NotEqual(t, mine, theirs)
	a := do(t, client(t, testKey), http.MethodPost, "/v1/runs/"+mine+"/cancel", `{}`, "Idempotency-Key", "tenants")
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
}

func TestKey_FiftyConcurrentStartsCreateOneRun(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	var mu sync.Mutex
	ids := map[string]int{}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			a, err := c.Do(t.Context(), http.MethodPost, "/v1/runs", `{"workflowId":"three"}`, "Idempotency-Key", "race")
			if err != nil {
				t.Error(err)
				return
			}
			var v created
			if err := a.JSON(&v); err != nil || a.Status != http.StatusCreated {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			mu.Lock()
			defer mu.Unlock()
			ids[v.RunID]++
		})
	}
	wg.Wait()
	require.Len(t, ids, 1)
	for id, n := range ids {
		require.Equal(t, 50, n)
		events, err := c.Finish(within(t, patience), id)
		require.NoError(t, err)
		require.Len(t, events, 8)
	}
}

func TestKey_WorksForEveryChange(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id := create(t, c, `{"workflowId":"wait"}`).RunID
	doc := definition("keyed", node("a", "core.noop", "{}", "{}"), "", "", "")
	for path, body := range map[string]string{
		"/v1/runs/" + id + "/cancel": `{"reason":"r"}`, "/v1/runs:bulk-cancel": `{"runIds":["` + id + `"]}`, "/v1/workflows": doc,
	} {
		first := do(t, c, http.MethodPost, path, body, "Idempotency-Key", "change")
		again := do(t, c, http.MethodPost, path, body, "Idempotency-Key", "change")
		require.Equal(t, first.Status, again.Status, "%s: %s", path, again.Body)
		require.Equal(t, string(first.Body), string(again.Body), path)
		require.Empty(t, first.Header.Get(replayHeader), path)
		require.Equal(t, "true", again.Header.Get(replayHeader), path)
	}
	other := create(t, c, `{"workflowId":"wait"}`).RunID
	a := do(t, c, http.MethodPost, "/v1/runs/"+other+"/cancel", `{"reason":"r"}`, "Idempotency-Key", "change")
	require.Equal(t, "idempotency_key_mismatch", a.Code(), "the path is part of the request")
	do(t, c, http.MethodPost, "/v1/runs/"+other+"/cancel", "")
}

func TestKey_OfARejectedRequestIsFree(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	a := do(t, c, http.MethodPost, "/v1/runs", `{"workflowId":"typed"}`, "Idempotency-Key", "corrected")
	require.Equal(t, "validation_error", a.Code())
	create(t, c, `{"workflowId":"typed","inputs":{"text":"now"}}`, "Idempotency-Key", "corrected")
	for _, key := range []string{"", strings.Repeat("k", 256), "with space"} {
		a := do(t, c, http.MethodPost, "/v1/runs", `{"workflowId":"noop"}`, "Idempotency-Key", key)
		require.Equal(t, http.StatusBadRequest, a.Status, "%q: %s", key, a.Body)
	}
	create(t, c, `{"workflowId":"noop"}`, "Idempotency-Key", strings.Repeat("k", 255))
}

// OpenWOP host contract §2.1: reads ignore the header, even an invalid one.
func TestKey_IsIgnoredByReads(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	for _, key := range []string{"", "with space", strings.Repeat("k", 256), "read"} {
		for _, path := range []string{"/v1/runs", "/v1/workflows/noop", wellKnown} {
			a := do(t, c, http.MethodGet, path, "", "Idempotency-Key", key)
			require.Equal(t, http.StatusOK, a.Status, "%q %s: %s", key, path, a.Body)
			require.Empty(t, a.Header.Get(replayHeader))
		}
	}
	create(t, c, `{"workflowId":"noop"}`, "Idempotency-Key", "read")
}

// OpenWOP host contract §2.1, retention: at least five retries. The last answer equals the first,
// even if the run has changed.
func TestKey_AllowsManyRetries(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	first := do(t, c, http.MethodPost, "/v1/runs", `{"workflowId":"noop"}`, "Idempotency-Key", "patient")
	var run created
	require.NoError(t, first.JSON(&run))
	for range 6 {
		again := do(t, c, http.MethodPost, "/v1/runs", `{"workflowId":"noop"}`, "Idempotency-Key", "patient")
		require.Equal(t, http.StatusCreated, again.Status)
		require.Equal(t, string(first.Body), string(again.Body))
		require.Equal(t, "true", again.Header.Get(replayHeader))
		await(t, c, run.RunID, patience, "completed")
	}
}

// Numbers are not rounded, neither in inputs nor in the digest of the request.
func TestKey_DistinguishesLargeNumbers(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	body := func(n string) string { return `{"workflowId":"noop","inputs":{"n":` + n + `}}` }
	id := create(t, c, body("9007199254740993"), "Idempotency-Key", "large").RunID
	require.Equal(t, id, create(t, c, body("9007199254740993.0"), "Idempotency-Key", "large").RunID)
	a := do(t, c, http.MethodPost, "/v1/runs", body("9007199254740992"), "Idempotency-Key", "large")
	require.Equal(t, "idempotency_key_mismatch", a.Code(), "%s", a.Body)
}

func TestDedup_AllowsOneActiveRunOfAScope(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	body := `{"workflowId":"wait","scopeId":"case-1"}`
	id := create(t, c, body, "X-Dedup", "enforce").RunID
	a := do(t, c, http.MethodPost, "/v1/runs", body, "X-Dedup", "enforce")
	require.Equal(t, http.StatusConflict, a.Status, "%s", a.Body)
	require.Equal(t, "run_already_active", a.Code())
	require.NotEmpty(t, a.Header.Get("Retry-After"))
	var e struct {
		Details struct {
			ActiveRunID, ActiveHost string
			RetryAfter              int
		}
	}
	require.NoError(t, a.JSON(&e))
	require.Equal(t, id, e.Details.ActiveRunID)
	require.Equal(t, "cloud", e.Details.ActiveHost)
	require.Positive(t, e.Details.RetryAfter)

	second := create(t, c, body).RunID // without the header there is no conflict
	other := create(t, c, `{"workflowId":"wait","scopeId":"case-2"}`, "X-Dedup", "enforce").RunID
	for _, r := range []string{id, second, other} {
		do(t, c, http.MethodPost, "/v1/runs/"+r+"/cancel", "")
		await(t, c, r, patience, "cancelled")
	}
	next := create(t, c, `{"workflowId":"noop","scopeId":"case-1"}`, "X-Dedup", "enforce").RunID
	_, err := c.Finish(within(t, patience), next)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, do(t, c, http.MethodPost, "/v1/runs", body, "X-Dedup", "maybe").Status)
}
