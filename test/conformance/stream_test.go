package conformance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/test/harness"
)

// talk is a run whose model streams the tokens at this interval.
func talk(delayMs int, tokens ...string) string {
	list, _ := json.Marshal(tokens) // strings always encode
	return fmt.Sprintf(`{"workflowId":"talk","configurable":{"mockProvider":{"id":"stream-text","config":{"tokens":%s,"delayMsPerToken":%d}}}}`, list, delayMs)
}

func TestStream_HasTheEventsOfItsMode(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, events := run(t, c, talk(0, "a", "b"))
	require.Equal(t, "run.started node.started output.chunk output.chunk provider.usage node.completed run.completed", strings.Join(names(events), " "))
	for _, tc := range []struct{ query, want string }{
		{"", "run.started node.completed run.completed"},
		{"?streamMode=updates", "run.started node.completed run.completed"},
		{"?streamMode=debug", strings.Join(names(events), " ")},
		{"?streamMode=values", "state.snapshot state.snapshot state.snapshot state.snapshot"},
		{"?streamMode=messages", "ai.message.chunk ai.message.chunk"},
		{"?streamMode=updates,messages", "run.started ai.message.chunk ai.message.chunk node.completed run.completed"},
		{"?streamMode=messages,debug", "run.started node.started ai.message.chunk ai.message.chunk provider.usage node.completed run.completed"},
		{"?streamMode=updates,updates", "run.started node.completed run.completed"},
	} {
		t.Run(tc.query, func(t *testing.T) {
			t.Parallel()
			got := frames(t, c, id, tc.query)
			require.Equal(t, tc.want, strings.Join(kinds(got), " "))
			last := -1
			for _, f := range got {
				seq, err := strconv.Atoi(f.ID)
				require.NoError(t, err)
				require.Greater(t, seq, last)
				last = seq
				if !strings.HasPrefix(f.Event, "state.") && f.Event != "ai.message.chunk" {
					require.Equal(t, string(events[seq].Raw), f.Data, "the recorded bytes")
				}
			}
		})
	}
}

func TestStream_HasTheHeadersOfAnEventStream(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, _ := run(t, c, `{"workflowId":"noop"}`)
	for _, accept := range []string{"text/event-stream", "*/*", "application/json, text/event-stream"} {
		a, err := c.Stream(within(t, patience), "/v1/runs/"+id+"/events", func(harness.Frame) bool { return true }, "Accept", accept)
		require.NoError(t, err)
		require.Equal(t, "text/event-stream", a.Header.Get("Content-Type"), accept)
		require.Equal(t, "no-cache", a.Header.Get("Cache-Control"))
		require.Equal(t, "no", a.Header.Get("X-Accel-Buffering"))
	}
}

func TestStream_ValuesAreTheStateAsOfEachEvent(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, _ := run(t, c, `{"workflowId":"three"}`)
	got := frames(t, c, id, "?streamMode=values")
	var states []string
	for _, f := range got {
		var s snapshot
		require.NoError(t, json.Unmarshal([]byte(f.Data), &s))
		require.Equal(t, id, s.RunID)
		states = append(states, s.Status)
	}
	require.Equal(t, "running running running running running running running completed", strings.Join(states, " "))
	a := do(t, c, http.MethodGet, "/v1/runs/"+id, "")
	var last, now map[string]any
	require.NoError(t, json.Unmarshal([]byte(got[len(got)-1].Data), &last))
	require.NoError(t, a.JSON(&now))
	delete(now, "waybill") // present only if requested
	require.Equal(t, now, last, "the last state is the snapshot")

	resumed := frames(t, c, id, "?streamMode=values", "Last-Event-ID", "4")
	require.Equal(t, resumed, frames(t, c, id, "?streamMode=values&lastEventId=4"), "for clients that cannot send the header")
	require.Equal(t, []string{"4", "5", "6", "7"}, ids(resumed), "a resumed view starts with the current state")
	require.Equal(t, got[4].Data, resumed[0].Data)
}

func ids(list []harness.Frame) []string {
	var out []string
	for _, f := range list {
		out = append(out, f.ID)
	}
	return out
}

func TestStream_MessagesAreTheTokens(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	tokens := []string{"Hel", "lo", " ", "wörld", "\n", `"quoted"`}
	id := create(t, c, talk(20, tokens...)).RunID
	var got []string
	for i, f := range frames(t, c, id, "?streamMode=messages") {
		var p struct {
			Chunk  string
			IsLast bool
			Meta   struct {
				FinishReason, Model string
				Usage               *struct{ CompletionTokens int }
			}
		}
		require.NoError(t, json.Unmarshal([]byte(f.Data), &p))
		got = append(got, p.Chunk)
		last := i == len(tokens)-1
		require.Equal(t, last, p.IsLast)
		require.Equal(t, "mock-stream-text-v1", p.Meta.Model)
		if last {
			require.Equal(t, "stop", p.Meta.FinishReason)
			require.Equal(t, len(tokens), p.Meta.Usage.CompletionTokens)
		}
	}
	require.Equal(t, tokens, got)
}

// A token that ends like the start of a secret stays one token: keys start with "h".
func TestStream_MessagesKeepTokensThatEndLikeAKeyBegins(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	tokens := []string{"much", "oh", " with", "out", "h"}
	id := create(t, c, talk(0, tokens...)).RunID
	var got []string
	for _, f := range frames(t, c, id, "?streamMode=messages") {
		var p struct{ Chunk string }
		require.NoError(t, json.Unmarshal([]byte(f.Data), &p))
		got = append(got, p.Chunk)
	}
	require.Equal(t, tokens, got)
}

func TestStream_FollowsALiveRunWithoutGapOrDouble(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	tokens := strings.Split(strings.Repeat("x", 40), "")
	id := create(t, c, talk(10, tokens...)).RunID
	results := make(chan []string, 5)
	for i := range cap(results) {
		go func() {
			var seen []string
			cursor := ""
			for { // each reader disconnects sometimes and resumes
				var headers []string
				if cursor != "" {
					headers = []string{"Last-Event-ID", cursor}
				}
				n, ended := 0, false
				_, err := c.Stream(t.Context(), "/v1/runs/"+id+"/events?streamMode=debug", func(f harness.Frame) bool {
					if f.Event == "" {
						return true
					}
					seen, cursor = append(seen, f.ID), f.ID
					ended = f.Event == "run.completed"
					n++
					return n < 7+i
				}, headers...)
				if err != nil {
					t.Error(err)
				}
				if err != nil || ended {
					results <- seen
					return
				}
			}
		}()
	}
	events, err := c.Finish(within(t, time.Minute), id)
	require.NoError(t, err)
	var want []string
	for _, e := range events {
		want = append(want, strconv.Itoa(e.Sequence))
	}
	for range cap(results) {
		require.Equal(t, want, <-results)
	}
}

func TestStream_ResumesStrictlyAfterTheLastEvent(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, events := run(t, c, `{"workflowId":"three"}`)
	for last := range len(events) - 1 {
		got := ids(frames(t, c, id, "?streamMode=debug", "Last-Event-ID", strconv.Itoa(last)))
		require.Len(t, got, len(events)-1-last, "after %d", last)
		require.Equal(t, got, ids(frames(t, c, id, "?streamMode=debug", "Last-Event-ID", fmt.Sprintf("%020d", last))), "zeros before it change nothing")
	}
}

// A standard EventSource reconnects until it gets 204.
func TestStream_EndsForReadersWithAllEvents(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, events := run(t, c, `{"workflowId":"three"}`)
	head := strconv.Itoa(len(events) - 1)
	for _, mode := range []string{"updates", "values", "messages", "debug", "updates,messages"} {
		for _, query := range []string{"?streamMode=" + mode, "?bufferMs=100&streamMode=" + mode} {
			a := do(t, c, http.MethodGet, "/v1/runs/"+id+"/events"+query, "", "Accept", "text/event-stream", "Last-Event-ID", head)
			require.Equal(t, http.StatusNoContent, a.Status, "%s: %s", query, a.Body)
			require.Empty(t, a.Body)
			require.NotEmpty(t, do(t, c, http.MethodGet, "/v1/runs/"+id+"/events?streamMode=debug", "", "Accept", "text/event-stream").Body)
		}
	}
	a := do(t, c, http.MethodGet, "/v1/runs/"+id+"/events?streamMode=messages", "", "Accept", "text/event-stream", "Last-Event-ID", "0")
	require.Equal(t, http.StatusNoContent, a.Status, "the mode shows none of the other events")

	said := create(t, c, talk(0, "a", "b")).RunID
	await(t, c, said, patience, "completed")
	chunks := frames(t, c, said, "?streamMode=messages")
	require.NotEmpty(t, chunks)
	a = do(t, c, http.MethodGet, "/v1/runs/"+said+"/events?streamMode=messages", "", "Accept", "text/event-stream", "Last-Event-ID", chunks[len(chunks)-1].ID)
	require.Equal(t, http.StatusNoContent, a.Status)
	require.Len(t, frames(t, c, said, "?streamMode=messages", "Last-Event-ID", chunks[0].ID), len(chunks)-1)
}

func TestStream_RejectsAPositionBeyondTheEnd(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	ended, events := run(t, c, `{"workflowId":"three"}`)
	live := create(t, c, `{"workflowId":"wait"}`).RunID
	await(t, c, live, patience, "running")
	for _, id := range []string{ended, live} {
		for _, last := range []string{strconv.Itoa(len(events)), "1000", "99999999999999999999"} {
			for _, query := range []string{"", "?streamMode=values", "?streamMode=messages&bufferMs=100"} {
				a := do(t, c, http.MethodGet, "/v1/runs/"+id+"/events"+query, "", "Accept", "text/event-stream", "Last-Event-ID", last)
				require.Equal(t, http.StatusBadRequest, a.Status, "%s%s after %s: %s", id, query, last, a.Body)
				require.Equal(t, "validation_error", a.Code())
				require.Contains(t, string(a.Body), "beyond the run's last event")
			}
		}
	}
	a := do(t, c, http.MethodGet, "/v1/runs/"+ended+"/events", "", "Accept", "text/event-stream", "Last-Event-ID", "1000")
	require.Contains(t, string(a.Body), "Last-Event-ID 1000 is beyond the run's last event, "+strconv.Itoa(len(events)-1))
	a = do(t, c, http.MethodGet, "/v1/runs/"+ended+"/events", "", "Accept", "text/event-stream", "Last-Event-ID", "99999999999999999999")
	require.Contains(t, string(a.Body), "Last-Event-ID is beyond the run's last event, "+strconv.Itoa(len(events)-1), "no other number is named")
}

func TestStream_BuffersIntoBatches(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	var got []harness.Frame
	took := time.Minute
	for attempt := 0; attempt < 5 && took >= 4*time.Second; attempt++ { // a busy machine only adds to the time
		id := create(t, c, talk(30, "a ", "b ", "c ", "d ", "e ", "f ", "g ", "h ")).RunID
		began := time.Now()
		got = frames(t, c, id, "?streamMode=debug&bufferMs=4000")
		took = time.Since(began)
	}
	require.Less(t, took, 4*time.Second, "the end does not wait for the timer")
	seq := -1
	for _, f := range got {
		require.Equal(t, "batch", f.Event, "no frames of single events")
		var docs []json.RawMessage
		require.NoError(t, json.Unmarshal([]byte(f.Data), &docs))
		require.NotEmpty(t, docs)
		events, err := harness.ParseEvents(docs)
		require.NoError(t, err)
		for _, e := range events {
			require.Equal(t, seq+1, e.Sequence)
			seq = e.Sequence
		}
		require.Equal(t, strconv.Itoa(seq), f.ID, "the id is the highest sequence in the batch")
	}
	require.Less(t, len(got), 4)

	id := create(t, c, talk(300, "a ", "b ", "c ", "d ", "e ", "f ", "g ", "h ")).RunID // it lasts longer than a request takes to arrive
	require.Greater(t, len(frames(t, c, id, "?streamMode=debug&bufferMs=50")), 2, "a short timer flushes on the way")
	require.NotContains(t, kinds(frames(t, c, id, "?streamMode=debug&bufferMs=0")), "batch")
}

func TestStream_IsADocumentIfJSONIsRequested(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, events := run(t, c, `{"workflowId":"three"}`)
	a := do(t, c, http.MethodGet, "/v1/runs/"+id+"/events", "", "Accept", "application/json")
	require.Equal(t, http.StatusOK, a.Status)
	require.Equal(t, "application/json", a.Header.Get("Content-Type"))
	polled := do(t, c, http.MethodGet, "/v1/runs/"+id+"/events/poll", "")
	require.Equal(t, string(polled.Body), string(a.Body), "the same object as a poll's")
	require.Len(t, events, 8)
}

func TestStream_RejectsUnsupportedRequests(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id, _ := run(t, c, `{"workflowId":"noop"}`)
	for _, tc := range []struct{ query, last, code string }{
		{"?streamMode=everything", "", "unsupported_stream_mode"},
		{"?streamMode=updates,everything", "", "unsupported_stream_mode"},
		{"?streamMode=values,updates", "", "unsupported_stream_mode"},
		{"?streamMode=debug,values", "", "unsupported_stream_mode"},
		{"?streamMode=", "", "unsupported_stream_mode"},
		{"?streamMode=Updates", "", "unsupported_stream_mode"},
		{"?bufferMs=-1", "", "validation_error"},
		{"?bufferMs=5001", "", "validation_error"},
		{"?bufferMs=1.5", "", "validation_error"},
		{"?bufferMs=", "", "validation_error"},
		{"?bufferMs=9999999999", "", "validation_error"},
		{"?streamMode=no&bufferMs=no", "", "unsupported_stream_mode"},
		{"", "x", "validation_error"},
		{"", "-1", "validation_error"},
		{"", "1.0", "validation_error"},
		{"", "-0", "validation_error"},
		{"", "+1", "validation_error"},
		{"", "1e3", "validation_error"},
		{"", "0x1", "validation_error"},
		{"", "1,2", "validation_error"},
		{"", "-99999999999999999999", "validation_error"},
	} {
		for _, accept := range []string{"text/event-stream", "application/json"} {
			headers := []string{"Accept", accept}
			if tc.last != "" {
				if accept == "application/json" {
					continue // the document has all events
				}
				headers = append(headers, "Last-Event-ID", tc.last)
			}
			a := do(t, c, http.MethodGet, "/v1/runs/"+id+"/events"+tc.query, "", headers...)
			require.Equal(t, http.StatusBadRequest, a.Status, "%+v: %s", tc, a.Body)
			require.Equal(t, tc.code, a.Code(), "%+v: %s", tc, a.Body)
			if tc.code == "unsupported_stream_mode" {
				require.Contains(t, string(a.Body), `"supported":["values","updates","messages","debug"]`)
			}
		}
	}
	a := do(t, c, http.MethodGet, "/v1/runs/ghost/events?streamMode=no", "")
	require.Equal(t, "run_not_found", a.Code(), "the run is looked up first")
}

// A client that disconnects does not affect the run.
func TestStream_ADisconnectCancelsNothing(t *testing.T) {
	t.Parallel()
	c := client(t, testKey)
	id := create(t, c, talk(10, "a", "b", "c", "d")).RunID
	_, err := c.Stream(within(t, patience), "/v1/runs/"+id+"/events?streamMode=debug", func(harness.Frame) bool { return false })
	require.NoError(t, err)
	require.Equal(t, "completed", await(t, c, id, patience, "completed", "cancelled", "failed").Status)
}
