package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/obs/runspan"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// tally records what is counted.
type tally struct {
	mu        sync.Mutex
	events    []string
	enqueued  int
	conflicts int
}

func (c *tally) Appended(st *runstate.State, events []wire.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range events {
		c.events = append(c.events, fmt.Sprintf("%s %03d %s", st.Record.RunID, e.Sequence, e.Type))
	}
}

func (c *tally) Enqueued()          { c.mu.Lock(); defer c.mu.Unlock(); c.enqueued++ }
func (c *tally) Conflict()          { c.mu.Lock(); defer c.mu.Unlock(); c.conflicts++ }
func (c *tally) Quarantined(string) {}

// names returns events in the form of a tally.
func names(runID string, events []wire.Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, fmt.Sprintf("%s %03d %s", runID, e.Sequence, e.Type))
	}
	return out
}

// A dispatcher dies during a run, another one takes it over, and a request pauses and resumes it.
// Every event is counted once, by the process that appended it.
func TestMetrics_CountEachEventInTheProcessThatAppendsIt(t *testing.T) {
	t.Parallel()
	started := make(chan struct{}, 3)
	goOn := make(chan struct{})
	slow := func(ctx context.Context, _ model.Task, j model.Journal) model.Result {
		if err := j.Record(ctx, wire.Draft{
			Type:    wire.EventOutputChunk,
			NodeID:  "a",
			Payload: []byte(`{"nodeId":"a","chunk":"x"}`),
		}); err != nil {
			return model.Result{Interrupted: err}
		}
		started <- struct{}{}
		select {
		case <-ctx.Done():
			return model.Result{Interrupted: ctx.Err()}
		case <-goOn:
			return model.Result{Output: node.Output{}}
		}
	}
	defs := define(t, nodeJSON("a", "core.ai.callPrompt", "{}")+","+nodeJSON("b", "core.noop", "{}"), `{"id":"e","sourceNodeId":"a","targetNodeId":"b"}`)
	r, count := newRig(t, defs, models(slow)), &tally{}
	r.count = count
	first, second := r.executor(defs, models(slow)), r.executor(defs, models(slow))
	r.create(t)

	d, err := r.log.Next(t.Context())
	require.NoError(t, err)
	ctx, kill := context.WithCancel(t.Context())
	lost := make(chan struct{})
	go func() { defer close(lost); first.Execute(ctx, d) }()
	<-started
	kill()
	<-lost

	done := make(chan struct{})
	go func() {
		defer close(done)
		d, err := r.log.Next(t.Context())
		if err == nil {
			second.Execute(t.Context(), d)
		}
	}()
	<-started
	_, err = first.Pause(t.Context(), "acme", "run_1", wire.DrainCurrent, "", "key")
	require.NoError(t, err)
	close(goOn)
	<-done
	_, err = first.Resume(t.Context(), "acme", "run_1", "")
	require.NoError(t, err)
	d, err = r.log.Next(t.Context())
	require.NoError(t, err)
	second.Execute(t.Context(), d)

	st, events, _ := r.eventsOf(t, theRun)
	require.Equal(t, wire.StatusCompleted, st.Status)
	slices.Sort(count.events)
	require.Equal(t, names("run_1", events), count.events)
	require.Equal(t, 1, count.enqueued, "it was resumed")
	require.Zero(t, count.conflicts)
	require.Zero(t, first.Active()+second.Active())
}

// Copied events were counted for the source.
func TestMetrics_DoNotCountCopiedHistory(t *testing.T) {
	t.Parallel()
	for _, mode := range []wire.ForkMode{wire.ForkReplay, wire.ForkBranch} {
		r, _ := source(t, 10)
		count := &tally{}
		r.count = count
		r.exec = r.executor(r.defs, r.models)
		r.fork(t, mode, 5)
		r.next(t)
		_, events, _ := r.eventsOf(t, theFork)
		require.Equal(t, names("run_2", events[5:]), count.events, mode)
	}
}

func TestMetrics_CountAWakeOnce(t *testing.T) {
	t.Parallel()
	defs, count := define(t, nodeJSON("w", "core.delay", `{"ms":60000}`)), &tally{}
	r := newRig(t, defs, nil)
	r.count = count
	r.exec = r.executor(defs, nil)
	r.create(t)
	r.next(t)
	_, frames := r.state(t)
	head := frames[len(frames)-1].Head()
	require.NoError(t, r.exec.Wake(t.Context(), theRun, head))
	require.NoError(t, r.exec.Wake(t.Context(), theRun, head), "awake already")
	require.Equal(t, 1, count.enqueued)
}

// A run that another dispatcher executes counts as a conflict; a run that a request cancelled does
// not.
func TestMetrics_CountConflictsOfDispatchersOnly(t *testing.T) {
	t.Parallel()
	for by, want := range map[string]int{"another-1": 1, "beside-another-2": 0} {
		started, stolen := make(chan struct{}), make(chan struct{})
		slow := func(ctx context.Context, _ model.Task, j model.Journal) model.Result {
			close(started)
			<-stolen
			return model.Result{Interrupted: j.Record(ctx, wire.Draft{Type: wire.EventLogAppended})}
		}
		defs, count := define(t, nodeJSON("a", "core.ai.callPrompt", "{}")), &tally{}
		r := newRig(t, defs, models(slow))
		r.count = count
		r.exec = r.executor(defs, models(slow))
		r.create(t)
		done := make(chan struct{})
		go func() { defer close(done); r.next(t) }()
		<-started
		require.Equal(t, 1, r.exec.Active())
		_, frames := r.state(t)
		last := frames[len(frames)-1]
		end := wire.Draft{Type: wire.EventRunCancelled}.Place("run_1", last.Head().Next, time.Now())
		_, err := r.log.Append(t.Context(), frame.New(theRun, subject.End, last.Head(), []wire.Event{end}).By(by), last.Pos)
		require.NoError(t, err)
		close(stolen)
		<-done
		require.Equal(t, want, count.conflicts, by)
	}
}

// OpenWOP host contract §10.3: the end of a run is one log record, with the ids of the run and its
// trace and without its content.
func TestLog_HasOneRecordOfTheEndOfARun(t *testing.T) {
	t.Parallel()
	trace, _ := runspan.TraceOf("run_1", "")
	want := map[string]any{
		"level":       "INFO",
		"msg":         "run ended",
		"run_id":      "run_1",
		"tenant":      "acme",
		"workflow_id": "wf",
		"trace_id":    trace.String(),
	}
	for status, tc := range map[wire.Status]struct {
		node string
		end  func(*testing.T, *rig)
		code string
	}{
		wire.StatusCompleted: {nodeJSON("a", "core.noop", "{}"), func(t *testing.T, r *rig) { r.next(t) }, ""},
		wire.StatusFailed: {
			nodeJSON("a", "core.fail", `{"code":"about hunter2-hunter2","message":"hunter2-hunter2"}`),
			func(t *testing.T, r *rig) { r.next(t) },
			"about [REDACTED:s]",
		},
		wire.StatusCancelled: {nodeJSON("a", "core.delay", `{"ms":60000}`), func(t *testing.T, r *rig) {
			r.next(t)
			for range 2 {
				_, _, err := r.exec.Cancel(t.Context(), "acme", "run_1", "hunter2-hunter2", "key")
				require.NoError(t, err)
			}
		}, ""},
	} {
		defs := define(t, tc.node)
		r, said := newRig(t, defs, nil), &bytes.Buffer{}
		r.said, r.red.secret = said, "hunter2-hunter2"
		r.exec = r.executor(defs, nil)
		r.create(t)
		tc.end(t, r)
		require.NotContains(t, said.String(), "hunter2")
		got := map[string]any{}
		require.NoError(t, json.Unmarshal(said.Bytes(), &got), "one record: %s", said)
		delete(got, "time")
		expected := maps.Clone(want)
		expected["status"] = string(status)
		if tc.code != "" {
			expected["error_code"] = tc.code
		}
		require.Equal(t, expected, got)
	}
}
