package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// row is a row of the run list.
type row struct {
	RunID, WorkflowID, Status string
}

// watch reads changed rows until the test ends. It returns once the stream is open.
func watch(t *testing.T, c *harness.Client, headers ...string) <-chan row {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	rows, ended := make(chan row, 256), make(chan struct{})
	var failed error // read after ended is closed
	opened := make(chan struct{})
	client := *c
	client.HTTP = &http.Client{Transport: opens{opened}}
	go func() {
		_, failed = client.Stream(ctx, "/v1/runs:watch", func(f harness.Frame) bool {
			var r row
			if f.Event == "run" && json.Unmarshal([]byte(f.Data), &r) == nil {
				rows <- r
			}
			return true
		}, headers...)
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	select {
	case <-opened:
	case <-ended:
		t.Fatalf("the stream did not open: %v", failed)
	case <-time.After(time.Minute):
		t.Fatal("the stream has not opened")
	}
	return rows
}

// opens closes a channel when an answer's headers arrive.
type opens struct{ opened chan struct{} }

func (o opens) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusOK {
		close(o.opened)
	}
	return res, err
}

// next returns the next row of a stream.
func next(t *testing.T, rows <-chan row) row {
	t.Helper()
	select {
	case r := <-rows:
		return r
	case <-time.After(time.Minute):
		t.Fatal("no row has come")
		return row{}
	}
}

func TestWatchRuns_C2b_ShowsARunFromItsBeginningToItsEnd(t *testing.T) {
	t.Parallel()
	h, c := consoleHost(t)
	own, foreign := h.Client(consoleKey), h.Client(readerKey)
	require.Equal(t, http.StatusUnauthorized, do(t, c, http.MethodGet, "/v1/runs:watch", "").Status)
	rows, theirs := watch(t, own), watch(t, foreign)
	session := watch(t, c, "Cookie", signIn(t, c, `{"key":"`+consoleKey+`"}`))

	run := start(t, own, `{"workflowId":"triage","inputs":{"mail":"Where is my order?"}}`)
	for _, stream := range []<-chan row{rows, session} {
		var seen []string
		for r := next(t, stream); ; r = next(t, stream) {
			require.Equal(t, run, r.RunID)
			require.Equal(t, "triage", r.WorkflowID)
			seen = append(seen, r.Status)
			if r.Status == "completed" {
				break
			}
		}
		require.Subset(t, []string{"pending", "running", "completed"}, seen)
		require.LessOrEqual(t, len(seen), 5, "a run's steps are no news of the list: %v", seen)
	}
	select {
	case r := <-theirs:
		t.Fatalf("another tenant received %v", r)
	default:
	}
	var list struct{ Runs []row }
	require.NoError(t, do(t, own, http.MethodGet, "/v1/runs", "").JSON(&list))
	require.Equal(t, []row{{run, "triage", "completed"}}, list.Runs)
}

// C2a, C3d: a row has the list's columns, is small, and is found by words.
func TestListRuns_C2a_FiltersRowsAndShowsWhatTheyWaitFor(t *testing.T) {
	t.Parallel()
	needsHost(t)
	model := newHeldModel(t)
	h, _ := consoleHost(t, "--stalled-after", "1s", "--provider", "slow="+model.URL+"/v1", "--unknown-models", "trust")
	c := h.Client(consoleKey)
	put(t, c, one("ask", "core.approvalGate", `{"title":"Ship it?","actions":["accept"]}`))
	put(t, c, one("slow", "core.ai.callPrompt", `{"provider":"slow","model":"m","prompt":"Take your time."}`))
	done := start(t, c, `{"workflowId":"triage","inputs":{"mail":"Where is my order?"},"tags":["order 7"]}`)
	asks := start(t, c, `{"workflowId":"ask"}`)
	_, err := c.Finish(within(t, time.Minute), done)
	require.NoError(t, err)
	type listed struct {
		RunID, Status, LastEventAt, StallsAt string
		LastSequence                         int
		Stalled                              bool
		Waits                                *struct {
			For, NodeID string
			Questions   int
		}
	}
	list := func(filter string) []listed {
		a := do(t, c, http.MethodGet, "/v1/runs?filter="+url.QueryEscape(filter), "")
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
		var v struct{ Runs []listed }
		require.NoError(t, a.JSON(&v))
		require.Less(t, len(a.Body), 1024*max(1, len(v.Runs)))
		return v.Runs
	}
	require.Eventually(t, func() bool { return len(list("status:waiting-approval")) == 1 }, time.Minute, 20*time.Millisecond)
	waiting := list("workflow:ask since:1h")[0]
	require.Equal(t, asks, waiting.RunID)
	require.Equal(t, "approval", waiting.Waits.For)
	require.Equal(t, "gate", waiting.Waits.NodeID)
	require.Equal(t, 1, waiting.Waits.Questions)
	require.Empty(t, waiting.StallsAt, "waiting for an answer is not stalling")
	ended := list(`tag:"order 7" status:completed`)[0]
	require.Equal(t, done, ended.RunID)
	require.Nil(t, ended.Waits)
	require.NotEmpty(t, ended.LastEventAt)
	require.Positive(t, ended.LastSequence)
	require.Empty(t, list("status:failed"))

	slow := start(t, c, `{"workflowId":"slow"}`)
	require.Eventually(t, func() bool {
		rows := list("workflow:slow")
		return len(rows) == 1 && rows[0].Stalled && rows[0].RunID == slow && rows[0].Status == "running" && rows[0].Waits.For == "node"
	}, time.Minute, 50*time.Millisecond, "nothing is heard of it")

	for _, filter := range []string{"colour:red", "triage", "status:done", "since:soon"} {
		a := do(t, c, http.MethodGet, "/v1/runs?filter="+url.QueryEscape(filter), "")
		require.Equal(t, http.StatusBadRequest, a.Status, filter)
		require.Equal(t, "validation_error", a.Code(), filter)
		require.Contains(t, string(a.Body), "filter", filter)
	}
}
