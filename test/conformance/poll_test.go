package conformance

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

func poll(t *testing.T, c *harness.Client, id, query string) harness.Page {
	t.Helper()
	a := do(t, c, http.MethodGet, "/v1/runs/"+id+"/events/poll"+query, "")
	require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	var p harness.Page
	require.NoError(t, a.JSON(&p))
	require.NotNil(t, p.Events, "an empty list is a list")
	for _, member := range []string{"runId", "events", "isComplete", "isTerminal", "lastEventSeq", "runStatus"} {
		require.Contains(t, string(a.Body), `"`+member+`":`)
	}
	return p
}

func TestPoll_ReturnsEventsAfterTheCursor(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, events := run(t, c, `{"workflowId":"three"}`)
	head := len(events) - 1
	for _, tc := range []struct {
		query    string
		n, last  int
		complete bool
	}{
		{"", 8, head, true},
		{"?lastSequence=-1", 8, head, true},
		{"?lastSequence=0", 7, head, true},
		{"?since=0", 7, head, true},
		{"?since=6&lastSequence=0", 7, head, true},
		{"?lastSequence=7", 0, 7, true},
		{"?lastSequence=1000", 0, 1000, true},
		{"?limit=3", 3, 2, false},
		{"?limit=5&lastSequence=2", 5, head, true},
		{"?limit=4&lastSequence=2", 4, 6, false},
	} {
		p := poll(t, c, id, tc.query)
		require.Len(t, p.Events, tc.n, tc.query)
		require.Equal(t, tc.last, p.LastEventSeq, tc.query)
		require.Equal(t, tc.complete, p.IsComplete, tc.query)
		require.True(t, p.IsTerminal, tc.query)
		require.Equal(t, "completed", p.RunStatus)
	}
	require.NotContains(t, string(do(t, c, http.MethodGet, "/v1/runs/"+id+"/events/poll?lastSequence=7", "").Body), "notice")
	beyond := do(t, c, http.MethodGet, "/v1/runs/"+id+"/events/poll?lastSequence=1000", "")
	require.Contains(t, string(beyond.Body), `"notice":"lastSequence 1000 is beyond the run's last event, 7; continue from there"`)
	beyond = do(t, c, http.MethodGet, "/v1/runs/"+id+"/events/poll?lastSequence=5000000000", "")
	require.Contains(t, string(beyond.Body), `"notice":"lastSequence 5000000000 is beyond the run's last event, 7; continue from there"`)
	beyond = do(t, c, http.MethodGet, "/v1/runs/"+id+"/events/poll?since=9", "")
	require.Contains(t, string(beyond.Body), `"notice":"since 9 is beyond the run's last event, 7; continue from there"`)
	a := do(t, c, http.MethodGet, "/v1/runs/"+id+"/events/poll", "")
	b := do(t, c, http.MethodGet, "/v1/runs/"+id+"/events/poll", "")
	require.Equal(t, string(a.Body), string(b.Body), "an ended run reads the same for ever")
}

func TestPoll_WaitsOnlyIfTheRunIsLiveAndNothingIsNewer(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id := create(t, c, `{"workflowId":"wait"}`).RunID
	await(t, c, id, patience, "running")
	began := time.Now()
	require.Len(t, poll(t, c, id, "?timeout=60").Events, 2, "existing events are returned immediately")
	p := poll(t, c, id, "?timeout=60&lastSequence=50")
	require.Empty(t, p.Events, "beyond the head is no reason to wait")
	require.Equal(t, 50, p.LastEventSeq)
	require.False(t, p.IsTerminal)
	require.Less(t, time.Since(began), time.Minute, "it does not wait")

	began = time.Now()
	p = poll(t, c, id, "?timeout=1&lastSequence=1")
	require.Empty(t, p.Events)
	require.GreaterOrEqual(t, time.Since(began), 900*time.Millisecond)
	require.Equal(t, "running", p.RunStatus)

	woken := make(chan harness.Page, 1)
	go func() {
		a, err := c.Do(t.Context(), http.MethodGet, "/v1/runs/"+id+"/events/poll?timeout=60&lastSequence=1", "")
		var p harness.Page
		if err != nil || a.JSON(&p) != nil {
			t.Errorf("poll: %v", err)
		}
		woken <- p
	}()
	do(t, c, http.MethodPost, "/v1/runs/"+id+"/cancel", "")
	select {
	case p := <-woken:
		require.NotEmpty(t, p.Events)
	case <-time.After(55 * time.Second): // of 60
		t.Fatal("a waiting poll was not woken by a new event")
	}
}

func TestPoll_RejectsParametersOutOfRange(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, _ := run(t, c, `{"workflowId":"noop"}`)
	for _, query := range []string{
		"?timeout=0", "?timeout=61", "?timeout=-1", "?timeout=x", "?timeout=1.5", "?timeout=",
		"?lastSequence=-2", "?lastSequence=x", "?lastSequence=1e3", "?lastSequence=99999999999999999999", "?since=x",
		"?limit=0", "?limit=5001", "?limit=x",
	} {
		a := do(t, c, http.MethodGet, "/v1/runs/"+id+"/events/poll"+query, "")
		require.Equal(t, http.StatusBadRequest, a.Status, "%s: %s", query, a.Body)
		require.Equal(t, "validation_error", a.Code())
		name, _, _ := strings.Cut(query[1:], "=")
		require.Contains(t, string(a.Body), name, "the message names the parameter")
	}
	require.Len(t, poll(t, c, id, "?timeout=1").Events, 4)
	require.Len(t, poll(t, c, id, "?timeout=60&limit=5000").Events, 4)
}
