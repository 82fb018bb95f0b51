package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// row is a row of the run list.
type row struct {
	RunID, WorkflowID, Status string
}

// watch reads the rows that change, until the test ends. It returns once the stream is
// open.
func watch(t *testing.T, c *harness.Client, headers ...string) <-chan row {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	rows, ended := make(chan row, 256), make(chan struct{})
	var failed error // read once ended is closed
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
	case <-time.After(20 * time.Second):
		t.Fatal("the stream has not opened")
	}
	return rows
}

// opens closes a channel when an answer's headers are there.
type opens struct{ opened chan struct{} }

func (o opens) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := http.DefaultTransport.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusOK {
		close(o.opened)
	}
	return res, err
}

// next is the next row of a stream.
func next(t *testing.T, rows <-chan row) row {
	t.Helper()
	select {
	case r := <-rows:
		return r
	case <-time.After(20 * time.Second):
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
		require.LessOrEqual(t, len(seen), 3, "a run's steps are no news of the list: %v", seen)
	}
	select {
	case r := <-theirs:
		t.Fatalf("another tenant was told of %v", r)
	default:
	}
	var list struct{ Runs []row }
	require.NoError(t, do(t, own, http.MethodGet, "/v1/runs", "").JSON(&list))
	require.Equal(t, []row{{run, "triage", "completed"}}, list.Runs)
}
