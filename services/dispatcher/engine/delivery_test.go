package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
)

// lease is the AckWait of the rig's executors.
const lease = 3 * time.Second

// slowLog delays reads and appends, and can fail appends.
type slowLog struct {
	*memory.Log
	reads, appends time.Duration
	err            error
}

func (l *slowLog) Run(ctx context.Context, r subject.Run) ([]*frame.Frame, error) {
	time.Sleep(l.reads) //nolint:forbidigo // in a bubble
	if l.err != nil {
		return nil, l.err
	}
	return l.Log.Run(ctx, r)
}

func (l *slowLog) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	time.Sleep(l.appends) //nolint:forbidigo // in a bubble
	return l.Log.Append(ctx, f, after)
}

// lost is a repeated delivery whose extensions fail for a time.
type lost struct {
	runlog.Delivery
	from, until time.Time

	mu    sync.Mutex // guards the fields below
	heard int
	ended string
}

func (l *lost) Redelivered() bool { return true }
func (l *lost) Tries() int        { return 2 }

func (l *lost) Extend() error {
	now := time.Now()
	if now.After(l.from) && now.Before(l.until) {
		return errors.New("no connection")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard++
	return nil
}

func (l *lost) Ack() error    { l.ended = "ack"; return l.Delivery.Ack() }
func (l *lost) Retry() error  { l.ended = "retry"; return l.Delivery.Retry() }
func (l *lost) Return() error { l.ended = "return"; return l.Delivery.Return() }

func (l *lost) signs() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heard
}

// A dispatcher extends its delivery while it reads a long log. If its extensions fail for AckWait,
// it must not end the delivery, even if later ones succeed: the queue may have delivered the run to
// another dispatcher.
func TestExecute_HoldsARunWhileItIsAtIt(t *testing.T) {
	t.Parallel()
	const long = 10*lease + lease/8
	sleeps, calls := nodeJSON("w", "core.delay", `{"ms":60000}`), nodeJSON("w", "core.ai.callPrompt", "{}")
	row, edges := nodeJSON("n0", "core.ai.callPrompt", "{}"), []string(nil)
	for i := range 8 {
		row += "," + nodeJSON(fmt.Sprint("n", i+1), "core.ai.callPrompt", "{}")
		edges = append(edges, fmt.Sprintf(`{"id":"e%d","sourceNodeId":"n%d","targetNodeId":"n%d"}`, i, i, i+1))
	}
	for name, c := range map[string]struct {
		log         slowLog
		node        string
		from, until time.Duration
		ended       string
		heard       int
		// edges connect nodes that each take a quarter of AckWait.
		edges []string
	}{
		"a short read": {log: slowLog{reads: lease / 10}, node: sleeps, ended: "ack"},
		"a long read":  {log: slowLog{reads: long}, node: sleeps, ended: "ack", heard: 13},
		"a long read that fails": {
			log:   slowLog{reads: long, err: runlog.ErrUnavailable},
			node:  sleeps,
			ended: "retry",
			heard: 13,
		},
		"a long call":          {node: calls, ended: "ack", heard: 13},
		"short calls in a row": {node: row, edges: edges, ended: "ack", heard: 3},
		"an extension is lost": {
			log:   slowLog{reads: long},
			node:  sleeps,
			from:  lease / 2,
			until: lease,
			heard: 12,
		},
		"all are lost":           {log: slowLog{reads: long}, node: sleeps, until: time.Hour},
		"all are lost of a call": {node: calls, until: time.Hour},
		"all are lost of a read that fails": {
			log:   slowLog{reads: long, err: runlog.ErrUnavailable},
			node:  sleeps,
			until: time.Hour,
		},
		"they are heard after a lease": {
			log:   slowLog{reads: long},
			node:  sleeps,
			from:  2 * lease,
			until: 3*lease + lease/2,
			heard: 11,
		},
		"a writer that hangs gives none": {log: slowLog{appends: long}, node: sleeps},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, nil, nil)
				c.log.Log = r.log
				r.exec = r.executorOn(&c.log, define(t, c.node, c.edges...), models(func(context.Context, model.Task, model.Journal) model.Result {
					takes := long
					if c.edges != nil {
						takes = lease / 4
					}
					time.Sleep(takes) //nolint:forbidigo // in a bubble
					return model.Result{}
				}))
				r.create(t)
				d, err := r.log.Next(t.Context())
				require.NoError(t, err)
				handed := time.Now()
				held := &lost{Delivery: d, from: handed.Add(c.from), until: handed.Add(c.until)}
				r.exec.Execute(t.Context(), held)
				require.Equal(t, c.ended, held.ended)
				heard := held.signs()
				require.InDelta(t, c.heard, heard, 1)
				time.Sleep(10 * lease) //nolint:forbidigo // in a bubble
				require.Equal(t, heard, held.signs(), "no extension after the run was released")
			})
		})
	}
}

// The same holds when the session reads the log again: after the redactor changed events, or after
// another writer appended.
func TestExecute_HoldsARunWhileItReadsAgain(t *testing.T) {
	t.Parallel()
	for policy, ended := range map[wire.DrainPolicy]string{wire.DrainCurrent: "ack", wire.DrainNot: "ack"} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, nil, nil)
			r.red.secret = "hunter2"
			log := &slowLog{Log: r.log}
			defs := define(t, nodeJSON("w", "core.ai.callPrompt", "{}"))
			other := r.executor(defs, nil)
			r.exec = r.executorOn(log, defs, models(func(context.Context, model.Task, model.Journal) model.Result {
				log.reads = 10*lease + lease/8
				_, err := other.Pause(t.Context(), theRun.Tenant, theRun.RunID, policy, "", "key")
				return model.Result{Err: &wire.NodeError{Code: "x", Message: fmt.Sprint("hunter2", err)}}
			}))
			r.create(t)
			d, err := r.log.Next(t.Context())
			require.NoError(t, err)
			held := &lost{Delivery: d}
			r.exec.Execute(t.Context(), held)
			require.Equal(t, ended, held.ended, policy)
			require.GreaterOrEqual(t, held.signs(), 26, "during two reads at least")
		})
	}
}

// The same holds when it reports to the run's parent.
func TestExecute_HoldsARunWhileItReadsItsRelatives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := gated(t, "")
		for {
			d, err := f.log.Next(t.Context())
			require.NoError(t, err)
			if d.Frame().Run.WorkflowID != "leaf" {
				f.live().Execute(t.Context(), d)
				continue
			}
			held := &lost{Delivery: d}
			f.executorOn(&slowLog{Log: f.log, reads: 10*lease + lease/8}, lease/3).Execute(t.Context(), held)
			require.Equal(t, "ack", held.ended)
			require.GreaterOrEqual(t, held.signs(), 26, "while it reads its own log and its parent's")
			return
		}
	})
}

// The frames that a session reads again may be another dispatcher's, which received the run since.
// The session continues none of its attempts.
func TestExecute_ContinuesOnlyItsOwnAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, nil)
		r.red.secret = "a-long-secret"
		defs := define(t, nodeJSON("a", "core.ai.callPrompt", "{}")+","+nodeJSON("b", "core.ai.callPrompt", "{}"), `{"id":"e","sourceNodeId":"a","targetNodeId":"b"}`)
		log := &slowLog{Log: r.log}
		calls := func(who string, said *[]string, then func()) models {
			return func(_ context.Context, task model.Task, _ model.Journal) model.Result {
				*said = append(*said, who+" asks for "+task.Input.NodeID)
				then()
				return model.Result{Drafts: []wire.Draft{{
					Type:    wire.EventOutputChunk,
					NodeID:  task.Input.NodeID,
					Payload: json.RawMessage(`{"chunk":"a-long-secret"}`),
				}}}
			}
		}
		var said []string
		r.alive = true // for the first; its lease has expired for the second
		first := r.executorOn(log, defs, calls("the first", &said, func() { log.reads = 10 * lease }))
		r.alive = false
		second := r.executorOn(r.log, defs, calls("the second", &said, func() { time.Sleep(20 * lease) })) //nolint:forbidigo // in a bubble
		r.create(t)
		d, err := r.log.Next(t.Context())
		require.NoError(t, err)
		held := &lost{Delivery: d}
		var wg sync.WaitGroup
		wg.Go(func() { first.Execute(t.Context(), held) })
		wg.Go(func() {
			time.Sleep(lease) //nolint:forbidigo // in a bubble
			second.Execute(t.Context(), &lost{Delivery: d})
		})
		wg.Wait()
		require.Equal(t, []string{"the first asks for a", "the second asks for b"}, said)
		require.Empty(t, held.ended, "another dispatcher may have received it")
		st, _ := r.state(t)
		require.Equal(t, wire.StatusCompleted, st.Status)
	})
}
