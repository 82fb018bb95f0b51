package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/engine/quarantine"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/model"
)

// doomed is a process that a run may end. Then it appends nothing and ends no delivery.
type doomed struct {
	runlog.Log
	exec *engine.Executor
	dead atomic.Bool
	died chan struct{}
}

func (m *doomed) die() {
	if m.dead.CompareAndSwap(false, true) {
		close(m.died)
	}
}

func (m *doomed) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	if m.dead.Load() {
		return 0, runlog.ErrUnavailable
	}
	return m.Log.Append(ctx, f, after)
}

// ofDoomed is a delivery to a doomed process.
type ofDoomed struct {
	runlog.Delivery
	of *doomed
}

func (d ofDoomed) unlessDead(do func() error) error {
	if d.of.dead.Load() {
		return runlog.ErrUnavailable
	}
	return do()
}

func (d ofDoomed) Extend() error { return d.unlessDead(d.Delivery.Extend) }
func (d ofDoomed) Ack() error    { return d.unlessDead(d.Delivery.Ack) }
func (d ofDoomed) Retry() error  { return d.unlessDead(d.Delivery.Retry) }
func (d ofDoomed) Return() error { return d.unlessDead(d.Delivery.Return) }

// deadly are definitions whose read ends the process of one run.
type deadly struct {
	oneDefinition
	process *doomed
}

func (d deadly) ByDigest(ctx context.Context, digest string) (*definition.Entry, error) {
	if digest != "deadly" {
		return d.oneDefinition.ByDigest(ctx, digest)
	}
	d.process.die()
	<-ctx.Done()
	return nil, ctx.Err()
}

// installation has one process after the other.
type installation struct {
	*rig
	runs []subject.Run
}

func (i *installation) add(t *testing.T, id, digest string) {
	t.Helper()
	r := subject.Run{Tenant: "acme", WorkflowID: "wf", RunID: id}
	rec, err := json.Marshal(&wire.RunRecord{
		RunID: id, WorkflowID: "wf", Owner: wire.Owner{Tenant: "acme"}, EngineVersion: 1, WorkflowDigest: digest,
	})
	require.NoError(t, err)
	_, err = i.log.Append(t.Context(), frame.NewStart(r, rec), 0)
	require.NoError(t, err)
	i.runs = append(i.runs, r)
}

// live runs a process until it dies or the time is over.
func (i *installation) live(ctx context.Context, wg *sync.WaitGroup, m *doomed, d time.Duration) (died bool) {
	taking, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	go func() {
		select {
		case <-m.died:
			cancel()
		case <-taking.Done():
		}
	}()
	for {
		d, err := i.log.Next(taking)
		if err != nil {
			return m.dead.Load()
		}
		wg.Go(func() { m.exec.Execute(ctx, ofDoomed{d, m}) })
	}
}

// bury does what the other dispatchers do once a lease is over.
func (i *installation) bury(t *testing.T, process string, next *engine.Executor) {
	t.Helper()
	i.dead.Store(process, true)
	i.log.Expire()
	for _, r := range i.runs {
		frames, err := i.log.Run(t.Context(), r)
		require.NoError(t, err)
		var o frame.Ownership
		for _, f := range frames {
			o = o.After(f)
		}
		if o.Owner == process && frames[len(frames)-1].Kind != subject.End {
			require.NoError(t, next.Requeue(t.Context(), r, o))
		}
	}
}

// A run ends every process that executes it. It ends in quarantine after a bounded number of them. The
// other runs of these processes complete.
func TestExecute_ARunThatEndsItsProcessIsQuarantined(t *testing.T) {
	t.Parallel()
	for name, deadlyDigest := range map[string]string{
		"in a call, after the claim":      "",
		"while it is loaded, before that": "deadly",
	} {
		synctest.Test(t, func(t *testing.T) {
			const others = 12
			base := define(t, nodeJSON("a", "core.ai.callPrompt", "{}"))
			i := &installation{rig: newRig(t, base, nil)}
			i.alive = true
			i.log.SetRetryDelay(time.Second)
			list := quarantine.New(quarantine.DefaultConfig(), kvmemory.New(), time.Now, slog.New(slog.DiscardHandler))
			i.quarantine = list
			start := func() *doomed {
				m := &doomed{Log: i.log, died: make(chan struct{})}
				m.exec = i.executorOn(m, deadly{base, m}, models(func(ctx context.Context, task model.Task, _ model.Journal) model.Result {
					if task.RunID == "run_deadly" {
						m.die()
						<-ctx.Done()
					} else if !waitFor(ctx, 40*time.Second) || m.dead.Load() {
						<-ctx.Done()
					}
					return model.Result{Interrupted: context.Cause(ctx)}
				}))
				return m
			}
			i.add(t, "run_deadly", deadlyDigest)
			for n := range others {
				i.add(t, fmt.Sprint("run_", n), "")
			}
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			deaths, m := 0, start()
			for i.live(ctx, &wg, m, 15*time.Minute) {
				deaths++
				waitFor(ctx, 10*time.Second) // its lease
				next := start()
				i.bury(t, m.exec.Process(), next.exec)
				m = next
				require.Less(t, deaths, 20, name)
			}
			cancel()
			wg.Wait()

			rec, err := list.Get(t.Context(), "acme", "run_deadly")
			require.NoError(t, err, name)
			require.Equal(t, quarantine.ReasonFailing, rec.Reason)
			require.Equal(t, quarantine.MaxDeaths, rec.Tries)
			require.LessOrEqual(t, deaths, quarantine.MaxDeaths+1)
			held, _, err := list.ForTenant(t.Context(), "acme", "", 100)
			require.NoError(t, err)
			require.Len(t, held, 1, "no other run is quarantined")
			for n := range others {
				frames, err := i.log.Run(t.Context(), i.runs[n+1])
				require.NoError(t, err)
				st, _, err := machine.Load(frames)
				require.NoError(t, err)
				require.Equal(t, wire.StatusCompleted, st.Status, "%s: run_%d", name, n)
			}
		})
	}
}

// waitFor waits in a bubble; false if ctx ends before.
func waitFor(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// A process that stops, and hands its run back, has not died with it.
func TestExecute_AProcessThatStopsCountsAsNoDeath(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, nodeJSON("a", "core.ai.callPrompt", "{}")), nil)
	store := kvmemory.New()
	r.quarantine = quarantine.New(quarantine.DefaultConfig(), store, time.Now, slog.New(slog.DiscardHandler))
	records := func() int {
		all, err := kv.List(t.Context(), store, "run.")
		require.NoError(t, err)
		return len(all)
	}
	ctx, cancel := context.WithCancel(t.Context())
	during := 0
	r.exec = r.executor(r.defs, models(func(ctx context.Context, _ model.Task, _ model.Journal) model.Result {
		during = records()
		cancel()
		<-ctx.Done()
		return model.Result{Interrupted: context.Cause(ctx)}
	}))
	r.create(t)
	d, err := r.log.Next(t.Context())
	require.NoError(t, err)
	r.exec.Execute(ctx, tried{d, 2})
	require.Equal(t, 1, during, "the execution is recorded")
	require.Zero(t, records())
}
