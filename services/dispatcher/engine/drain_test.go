package engine_test

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/callguard"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
)

// twoCalls is a run of two consecutive calls, each of some seconds.
func twoCalls(t *testing.T, r *rig, seconds int) (calls *[]string, next func(who string)) {
	t.Helper()
	said := &[]string{}
	defs := define(t, nodeJSON("a", "core.ai.callPrompt", "{}")+","+nodeJSON("b", "core.ai.callPrompt", "{}"), `{"id":"e","sourceNodeId":"a","targetNodeId":"b"}`)
	return said, func(who string) {
		r.exec = r.executor(defs, models(func(ctx context.Context, task model.Task, _ model.Journal) model.Result {
			*said = append(*said, who+" calls "+task.Input.NodeID)
			select {
			case <-time.After(time.Duration(seconds) * time.Second):
				return model.Result{}
			case <-ctx.Done():
				return model.Result{Interrupted: context.Cause(ctx)}
			}
		}))
	}
}

func TestDrain_RecordsWhatEndsAndReleasesTheRest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cut  bool
		want []string
	}{
		"the call ends":   {false, []string{"one calls a", "two calls b"}},
		"the call is cut": {true, []string{"one calls a", "two calls a", "two calls b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil, nil)
				r.alive = true // the draining process is alive: no other process may take its run over
				log := &bytes.Buffer{}
				r.said = log
				calls, process := twoCalls(t, r, 10)
				process("one")
				one := r.exec
				r.create(t)
				d, err := r.log.Next(t.Context())
				require.NoError(t, err)
				done := make(chan struct{})
				go func() { defer close(done); one.Execute(t.Context(), d) }()
				synctest.Wait()
				one.Drain()
				if c.cut {
					synctest.Wait()
					one.Cut()
				}
				began := time.Now()
				<-done
				require.Less(t, time.Since(began), 11*time.Second)
				if c.cut {
					require.Regexp(t, `"level":"WARN","msg":"a call was cut off.*"run_id":"run_1","node_id":"a","at_next_start":"the call is repeated"`, log.String())
				} else {
					require.NotContains(t, log.String(), "WARN")
				}
				_, frames := r.state(t)
				last := frames[len(frames)-1]
				require.Equal(t, subject.Wake, last.Kind, "it is in the queue")
				owner := frame.Ownership{}
				for _, f := range frames {
					owner = owner.After(f)
				}
				require.Empty(t, owner.Owner, "and has no owner")

				process("two")
				for st, _ := r.state(t); !st.Status.Terminal(); st, _ = r.state(t) {
					r.next(t)
				}
				st, _ := r.state(t)
				require.Equal(t, wire.StatusCompleted, st.Status)
				require.Equal(t, c.want, *calls)
			})
		})
	}
}

func TestDrain_TakesNothingNew(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil, nil)
	calls, process := twoCalls(t, r, 0)
	process("one")
	r.create(t)
	d, err := r.log.Next(t.Context())
	require.NoError(t, err)
	n := &noted{Delivery: d}
	r.exec.Drain()
	r.exec.Execute(t.Context(), n)
	require.Equal(t, "return", n.ended)
	require.Empty(t, *calls)
}

// guardedRun is a run of parallel calls on the first of several processes. Calls of waits wait before
// they are sent, as in the queue of a limited provider; the others take 10 seconds.
func guardedRun(t *testing.T, nodes string, waits ...string) (r *rig, calls *[]string, process func(who string)) {
	t.Helper()
	r, calls = newRig(t, nil, nil), &[]string{}
	r.alive = true
	r.moreTypes = node.Catalog{node.TypeSideEffect: {ID: node.TypeSideEffect, Class: node.Effect}}
	defs := define(t, nodes)
	var mu sync.Mutex
	return r, calls, func(who string) {
		r.exec = r.executor(defs, models(func(ctx context.Context, task model.Task, _ model.Journal) model.Result {
			if who == "one" && slices.Contains(waits, task.Input.NodeID) {
				waiting, cancel := callguard.Waiting(ctx)
				defer cancel()
				<-waiting.Done()
			}
			if err := callguard.Begin(ctx); err != nil {
				return model.Result{Interrupted: err, Unsent: true}
			}
			mu.Lock()
			*calls = append(*calls, who+" calls "+task.Input.NodeID)
			mu.Unlock()
			select {
			case <-time.After(10 * time.Second):
				return model.Result{}
			case <-ctx.Done():
				return model.Result{Interrupted: context.Cause(ctx)}
			}
		}))
	}
}

// executing executes the next delivered run with the executor, in the background.
func (r *rig) executing(t *testing.T) (done chan struct{}) {
	t.Helper()
	d, err := r.log.Next(t.Context())
	require.NoError(t, err)
	done = make(chan struct{})
	exec := r.exec
	go func() { defer close(done); exec.Execute(t.Context(), d) }()
	synctest.Wait()
	return done
}

// Calls that wait when the drain begins are never sent here, and are not lost. Without calls in flight
// another process has the run immediately.
func TestDrain_BeginsNoCallThatWaits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		waits []string
		takes time.Duration
		want  []string
	}{
		"a call is in flight": {[]string{"b"}, 10 * time.Second, []string{"one calls a", "two calls b"}},
		"none is":             {[]string{"a", "b"}, 0, []string{"two calls a", "two calls b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, calls, process := guardedRun(t, nodeJSON("a", toolA, "{}")+","+nodeJSON("b", toolA, "{}"), c.waits...)
				process("one")
				r.create(t)
				done := r.executing(t)
				began := time.Now()
				r.exec.Drain()
				<-done
				require.Equal(t, c.takes, time.Since(began))

				process("two")
				r.next(t)
				st, _ := r.state(t)
				require.Equal(t, wire.StatusCompleted, st.Status, "%+v", st.Error)
				slices.Sort(*calls)
				require.Equal(t, c.want, *calls)
				require.Zero(t, st.Nodes["a"].Lost+st.Nodes["b"].Lost)
			})
		})
	}
}

// A result that arrives after the cut is recorded, and a call that was not sent is not lost.
func TestDrain_RecordsResultsThatArriveAfterTheCut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, nil)
		r.moreTypes = node.Catalog{node.TypeSideEffect: {ID: node.TypeSideEffect, Class: node.Effect}}
		defs := define(t, nodeJSON("a", toolA, "{}"))
		calls := 0
		r.exec = r.executor(defs, models(func(ctx context.Context, _ model.Task, _ model.Journal) model.Result {
			calls++
			<-ctx.Done()
			sleepIn(t.Context(), unsentWithin/2) // the receiver has carried it out, and answers
			return model.Result{Output: node.Output{}}
		}))
		r.create(t)
		done := r.executing(t)
		r.exec.Drain()
		synctest.Wait()
		r.exec.Cut()
		<-done
		r.exec = r.executor(defs, nil)
		r.next(t)
		st, _ := r.state(t)
		require.Equal(t, wire.StatusCompleted, st.Status, "%+v", st.Error)
		require.Equal(t, 1, calls)
	})
}

// unsentWithin is how long a session waits for the results of calls that it cut.
const unsentWithin = time.Second

// A process that was stopped, and lost its lease, begins none of the calls that wait.
func TestLease_ALostOneBeginsNoCallThatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, nil)
		r.alive = true
		defs := define(t, nodeJSON("a", "core.ai.callPrompt", "{}"))
		room, calls := make(chan struct{}), []string{}
		process := func(who string) {
			r.exec = r.executor(defs, models(func(ctx context.Context, _ model.Task, _ model.Journal) model.Result {
				<-room
				if err := callguard.Begin(ctx); err != nil {
					return model.Result{Interrupted: err, Unsent: true}
				}
				calls = append(calls, who)
				return model.Result{}
			}))
		}
		process("one")
		r.create(t)
		one := r.exec.Process()
		done := r.executing(t)
		r.dead.Store(one, true) // it does not know yet
		close(room)
		<-done
		require.Empty(t, calls)
		_, frames := r.state(t)
		r.log.Expire()
		process("two")
		r.next(t)
		st, now := r.state(t)
		require.Equal(t, wire.StatusCompleted, st.Status)
		require.Equal(t, []string{"two"}, calls)
		require.Greater(t, len(now), len(frames))
	})
}
