package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// limiter is a limit of calls in flight.
type limiter struct {
	mu    sync.Mutex
	limit int
	held  int
	most  int
	asked []string
	// err is the answer to all calls of the node down. before is called first; nil does nothing.
	down   string
	err    error
	before func(t model.Task)
	// permanent refuses with an error that allows no other try.
	permanent bool
}

func (l *limiter) Admit(_ context.Context, t model.Task) (func(), *wire.NodeError, error) {
	if l.before != nil {
		l.before(t)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, t.Input.NodeID)
	if l.err != nil && t.Input.NodeID == l.down {
		return nil, nil, l.err
	}
	if l.held >= l.limit {
		return nil, &wire.NodeError{
			Code: "rate_limited", Message: "the limit is used up", Retryable: !l.permanent, Capacity: true, RetryAfter: time.Second,
		}, nil
	}
	l.held++
	l.most = max(l.most, l.held)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.held--
	}, nil, nil
}

func (l *limiter) set(limit int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = limit
}

// limitedRig is a rig whose node type TypeSideEffect is a tool that counts its calls, by node.
func limitedRig(t *testing.T, l *limiter, nodes string, edges ...string) (r *rig, calls *callCount) {
	t.Helper()
	r, calls = newRig(t, nil, nil), &callCount{of: map[string]int{}}
	if l != nil {
		r.limiter = l
	}
	r.moreTypes = node.Catalog{node.TypeSideEffect: {ID: node.TypeSideEffect, Class: node.Effect}}
	r.defs, r.models = define(t, nodes, edges...), calls.models()
	r.exec = r.executor(r.defs, r.models)
	r.create(t)
	return r, calls
}

type callCount struct {
	mu sync.Mutex
	of map[string]int
	// during is called within a call; nil does nothing.
	during func(ctx context.Context, id string)
	// interrupt are the nodes whose call could not be sent.
	interrupt map[string]bool
}

func (c *callCount) models() models {
	return func(ctx context.Context, t model.Task, _ model.Journal) model.Result {
		c.mu.Lock()
		c.of[t.Input.NodeID]++
		c.mu.Unlock()
		if c.during != nil {
			c.during(ctx, t.Input.NodeID)
		}
		if ctx.Err() != nil {
			return model.Result{Interrupted: context.Cause(ctx)}
		}
		if c.interrupt[t.Input.NodeID] {
			return model.Result{Interrupted: errors.New("not sent"), Unsent: true}
		}
		return model.Result{Output: node.Output{}}
	}
}

// goOn lets the recorded pause of a waiting run pass, and wakes it.
func (r *rig) goOn(t *testing.T) {
	t.Helper()
	r.ahead.Add(int64(time.Minute))
	_, frames := r.state(t)
	require.NoError(t, r.exec.Wake(t.Context(), theRun, frames[len(frames)-1].Head()))
}

// finish executes the run until it ends.
func (r *rig) finish(t *testing.T) {
	t.Helper()
	for st, _ := r.state(t); !st.Status.Terminal(); st, _ = r.state(t) {
		if waiting, _ := r.log.Backlog(); waiting == 0 {
			r.goOn(t)
		}
		r.next(t)
	}
}

// byFrame returns the types of the events of each frame.
func byFrame(t *testing.T, frames []*frame.Frame) (out []string) {
	t.Helper()
	for _, f := range frames {
		var types []string
		events, err := f.Events()
		require.NoError(t, err)
		for _, e := range events {
			types = append(types, string(e.Type))
		}
		out = append(out, strings.Join(types, " "))
	}
	return out
}

const toolA = node.TypeSideEffect

// The attempt of a refused call begins and ends in one frame, which also gives the run up.
func TestLimit_ARefusedCallIsRecordedAsOneStep(t *testing.T) {
	t.Parallel()
	l := &limiter{}
	r, calls := limitedRig(t, l, nodeJSON("a", toolA, "{}"))
	r.next(t)
	st, frames := r.state(t)
	require.Equal(t, []string{"", "run.started node.started node.retried"}, byFrame(t, frames))
	require.Empty(t, frames[len(frames)-1].Note, "the effect neither began nor is held")
	n := st.Nodes["a"]
	require.Equal(t, runstate.NodeRetrying, n.Status)
	require.Equal(t, "no_capacity", n.Error.Details["reason"])
	require.Equal(t, "the limit is used up", n.Error.Message)
	require.Equal(t, []time.Time{n.Due()}, r.sleep, "the run waits without a slot")
	require.Zero(t, r.exec.Active())

	r.goOn(t)
	l.set(1)
	r.exec = r.executor(r.defs, r.models)
	r.next(t)
	st, frames = r.state(t)
	require.Equal(t, wire.StatusCompleted, st.Status)
	require.Equal(t, 1, st.Executions, "waits use up no execution")
	require.Equal(t, []string{"", "node.started", "node.completed run.completed"}, byFrame(t, frames)[2:])
	require.Equal(t, map[string]int{"a": 1}, calls.of)
	require.Zero(t, l.held)
}

// Two dispatchers die, each at any of its appends, while the limit is used up. No outcome is unknown,
// and a third dispatcher makes the call once.
func TestLimit_ADyingDispatcherLeavesNoUnknownOutcomeOfARefusedCall(t *testing.T) {
	t.Parallel()
	for _, stores := range []bool{false, true} {
		for first := range 4 {
			for second := range 4 {
				l := &limiter{}
				r, calls := limitedRig(t, l, nodeJSON("a", toolA, "{}"))
				for _, appends := range []int{first, second} {
					if waiting, _ := r.log.Backlog(); waiting == 0 {
						r.goOn(t)
					}
					r.exec = r.executorOn(&mortal{Log: r.log, appends: appends, stores: stores}, r.defs, r.models)
					r.next(t)
					r.log.Expire()
					r.exec = r.executor(r.defs, r.models)
				}
				l.set(1)
				r.finish(t)
				st, _ := r.state(t)
				require.Equal(t, wire.StatusCompleted, st.Status, "%v %d %d: %+v", stores, first, second, st.Nodes["a"].Error)
				require.Zero(t, st.Nodes["a"].Lost)
				require.Equal(t, map[string]int{"a": 1}, calls.of)
				require.Zero(t, l.held)
			}
		}
	}
}

// A dispatcher that dies after the admission and before the append leaves no start in the log.
func TestLimit_ADyingDispatcherLeavesNoStartOfAnAdmittedCall(t *testing.T) {
	t.Parallel()
	l := &limiter{limit: 1}
	r, calls := limitedRig(t, l, nodeJSON("a", toolA, "{}"))
	dying := r.executorOn(&mortal{Log: r.log}, r.defs, r.models)
	d, err := r.log.Next(t.Context())
	require.NoError(t, err)
	dying.Execute(t.Context(), d)
	_, frames := r.state(t)
	require.Len(t, frames, 1, "only the record")
	require.Empty(t, calls.of)
	require.Equal(t, []string{"a"}, l.asked)
	require.Zero(t, l.held, "a live process releases the place")

	r.log.Expire()
	r.next(t)
	st, _ := r.state(t)
	require.Equal(t, wire.StatusCompleted, st.Status)
	require.Equal(t, map[string]int{"a": 1}, calls.of)
	require.Zero(t, st.Nodes["a"].Lost)
}

// Of parallel calls, only the one in flight has an unknown outcome after a takeover.
func TestLimit_ATakeoverFindsOnlyTheCallInFlight(t *testing.T) {
	t.Parallel()
	l := &limiter{limit: 1}
	r, calls := limitedRig(t, l, strings.Join([]string{
		nodeJSON("a", toolA, "{}"), nodeJSON("b", toolA, "{}"), nodeJSON("c", toolA, "{}"),
	}, ","))
	d, err := r.log.Next(t.Context())
	require.NoError(t, err)
	ctx, kill := context.WithCancel(t.Context())
	inFlight := make(chan string, 1)
	calls.during = func(ctx context.Context, id string) { inFlight <- id; <-ctx.Done() }
	done := make(chan struct{})
	go func() { defer close(done); r.exec.Execute(ctx, d) }()
	cut := <-inFlight
	kill()
	<-done
	require.Zero(t, l.held)

	calls.during = nil
	r.log.Expire()
	r.exec = r.executor(r.defs, r.models)
	r.finish(t)
	st, _ := r.state(t)
	for id, n := range st.Nodes {
		if id == cut {
			require.Equal(t, "outcome_unknown", n.Error.Code)
			continue
		}
		require.NotEqual(t, runstate.NodeFailed, n.Status, "%s: %+v", id, n.Error)
	}
	require.Equal(t, 1, calls.of[cut])
	require.Equal(t, 1, l.most)
}

// A place is kept while frames of other writers delay the start, and returned if the run ends.
func TestLimit_APlaceOutlastsOtherFrames(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(t *testing.T, r *rig)
		want   wire.Status
		calls  map[string]int
	}{
		"a variable": {func(t *testing.T, r *rig) {
			require.NoError(t, r.exec.SetVariables(t.Context(), "acme", "run_1", map[string]json.RawMessage{"v": []byte(`1`)}))
		}, wire.StatusCompleted, map[string]int{"a": 1}},
		"a cancellation": {func(t *testing.T, r *rig) {
			_, _, err := r.exec.Cancel(t.Context(), "acme", "run_1", "enough", "ann")
			require.NoError(t, err)
		}, wire.StatusCancelled, map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &limiter{limit: 1}
			r, calls := limitedRig(t, l, nodeJSON("a", toolA, "{}"))
			once := sync.OnceFunc(func() { c.change(t, r) })
			l.before = func(model.Task) { once() }
			r.next(t)
			if waiting, _ := r.log.Backlog(); waiting > 0 {
				r.next(t)
			}
			st, _ := r.state(t)
			require.Equal(t, c.want, st.Status)
			require.Equal(t, c.calls, calls.of)
			require.Equal(t, []string{"a"}, l.asked, "a place is asked for once")
			require.Zero(t, l.held)
		})
	}
}

// The counts of a limit cannot be read while another call is in flight. Its result is recorded, and
// the call without an answer is made later.
func TestLimit_AnOutageCostsNoCallInFlight(t *testing.T) {
	t.Parallel()
	l := &limiter{limit: 4, down: "c", err: kv.ErrUnavailable}
	r, calls := limitedRig(t, l, strings.Join([]string{
		nodeJSON("a", toolA, "{}"), nodeJSON("b", "core.delay", `{"delayMs":20}`), nodeJSON("c", toolA, "{}"),
	}, ","), `{"id":"e","sourceNodeId":"b","targetNodeId":"c"}`)
	down := make(chan struct{})
	l.before = func(task model.Task) {
		if task.Input.NodeID == "c" {
			close(down)
		}
	}
	calls.during = func(_ context.Context, id string) {
		if id == "a" {
			<-down
		}
	}
	r.next(t)
	st, _ := r.state(t)
	require.Equal(t, runstate.NodeCompleted, st.Nodes["a"].Status, "its result is in the log")
	require.Zero(t, l.held)
	require.Equal(t, map[string]int{"a": 1}, calls.of)

	l.err, l.before = nil, nil
	r.log.Expire()
	r.exec = r.executor(r.defs, r.models)
	r.next(t)
	st, _ = r.state(t)
	require.Equal(t, wire.StatusCompleted, st.Status)
	require.Equal(t, map[string]int{"a": 1, "c": 1}, calls.of)
	require.Zero(t, st.Nodes["c"].Lost)
}

// A node that does not wait for capacity fails without a call, and the run goes on from there.
func TestLimit_ANodeMayFailInsteadOfWaiting(t *testing.T) {
	t.Parallel()
	l := &limiter{}
	tool := strings.TrimSuffix(nodeJSON("a", toolA, "{}"), "}") + `,"settings":{"retry":{"onCapacity":"fail"}}}`
	r, calls := limitedRig(t, l, tool)
	r.next(t)
	st, frames := r.state(t)
	require.Equal(t, wire.StatusFailed, st.Status)
	require.Equal(t, "rate_limited", st.Nodes["a"].Error.Code)
	require.Equal(t, []string{"", "run.started node.started node.failed run.failed"}, byFrame(t, frames))
	require.Equal(t, subject.End, frames[len(frames)-1].Kind)
	require.Empty(t, calls.of)
}

// Refused calls leave their turn to the next ones: with four calls at a time and two places, all of
// eight parallel nodes are called.
func TestLimit_RefusedCallsLeaveTheirTurnToOthers(t *testing.T) {
	t.Parallel()
	l := &limiter{limit: 2}
	var nodes []string
	for _, id := range strings.Split("abcdefgh", "") {
		nodes = append(nodes, nodeJSON(id, toolA, "{}"))
	}
	r, calls := limitedRig(t, l, strings.Join(nodes, ","))
	r.finish(t)
	st, frames := r.state(t)
	require.Equal(t, wire.StatusCompleted, st.Status)
	require.Len(t, calls.of, 8)
	for id, n := range calls.of {
		require.Equal(t, 1, n, id)
	}
	require.LessOrEqual(t, l.most, 2)
	require.True(t, slices.ContainsFunc(byFrame(t, frames), func(f string) bool { return strings.Contains(f, "node.retried") }))
}
