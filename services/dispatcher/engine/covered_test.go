package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/engine"
	"waybill.dev/waybill/services/dispatcher/engine/quarantine"
	"waybill.dev/waybill/services/dispatcher/model"
)

// slowDefinitions returns definitions once open is closed.
type slowDefinitions struct {
	oneDefinition
	open chan struct{}
}

func (s slowDefinitions) ByDigest(ctx context.Context, digest string) (*definition.Entry, error) {
	select {
	case <-s.open:
		return s.oneDefinition.ByDigest(ctx, digest)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// owned is a run of one call, delivered to two dispatchers by two frames.
type owned struct {
	*rig
	peers      *peers
	open       chan struct{} // closed once the first dispatcher finds definitions
	outcome    chan model.Result
	calls      []string
	start      runlog.Delivery // of the frame at 1
	wake       runlog.Delivery // of the frame at 2
	first      *engine.Executor
	firstEnded *noted
	done       chan struct{}
}

func newOwned(t *testing.T) *owned {
	t.Helper()
	o := &owned{
		rig:     newRig(t, nil, nil),
		peers:   &peers{},
		open:    make(chan struct{}),
		outcome: make(chan model.Result),
		done:    make(chan struct{}),
	}
	o.alive, o.rig.peers = true, o.peers
	defs := define(t, nodeJSON("a", "core.ai.callPrompt", "{}"))
	o.first = o.executor(slowDefinitions{defs, o.open}, models(func(ctx context.Context, _ model.Task, _ model.Journal) model.Result {
		o.calls = append(o.calls, "first")
		select {
		case r := <-o.outcome:
			return r
		case <-ctx.Done():
			return model.Result{Interrupted: context.Cause(ctx)}
		}
	}))
	o.exec = o.executor(defs, models(func(context.Context, model.Task, model.Journal) model.Result {
		o.calls = append(o.calls, "second")
		return model.Result{}
	}))
	for _, x := range []*engine.Executor{o.first, o.exec} {
		o.peers.of.Store(x.Process(), x)
	}
	o.create(t)
	o.append(t, subject.Wake, "OTHER-1")
	o.start, o.wake = o.take(t), o.take(t)
	return o
}

// append appends a frame without events.
func (o *owned) append(t *testing.T, kind subject.Kind, writer string) {
	t.Helper()
	last := lastFrame(t, o.rig)
	_, err := o.log.Append(t.Context(), frame.New(theRun, kind, last.Head(), nil).By(writer), last.Pos)
	require.NoError(t, err)
}

func (o *owned) take(t *testing.T) runlog.Delivery {
	t.Helper()
	d, err := o.log.Next(t.Context())
	require.NoError(t, err)
	return d
}

// executes makes the first dispatcher execute the run for a delivery.
func (o *owned) executes(t *testing.T, d runlog.Delivery) {
	t.Helper()
	o.firstEnded = &noted{Delivery: d}
	go func() { defer close(o.done); o.first.Execute(t.Context(), o.firstEnded) }()
	synctest.Wait()
}

// handed passes a delivery to the second dispatcher and returns how it ended it.
func (o *owned) handed(t *testing.T, d runlog.Delivery) (ended string) {
	t.Helper()
	n := &noted{Delivery: seenBefore{d}}
	o.exec.Execute(t.Context(), n)
	return n.ended
}

// kill ends the first dispatcher: it appends nothing more and ends no delivery.
func (o *owned) kill() {
	o.dead.Store(o.first.Process(), true)
	o.first.LeaseLost()
	<-o.done
}

// drained makes the second dispatcher execute the queue, and returns the run's status.
func (o *owned) drained(t *testing.T) wire.Status {
	t.Helper()
	for waiting, _ := o.log.Backlog(); waiting > 0; waiting, _ = o.log.Backlog() {
		o.next(t)
	}
	st, _ := o.state(t)
	return st.Status
}

// A delivery can be ended if the owner knows its frame, or will read it, and executes the run under
// another delivery. The owner ends its own delivery itself.
func TestExecute_EndsADeliveryThatTheOwnerCovers(t *testing.T) {
	t.Parallel()
	later := func(t *testing.T, o *owned) runlog.Delivery {
		t.Helper()
		o.append(t, subject.Wake, "OTHER-2")
		return o.take(t)
	}
	for name, c := range map[string]struct {
		owners, others func(t *testing.T, o *owned) runlog.Delivery
		unclaimed      bool
		ended          string
	}{
		"an earlier one": {
			owners: func(_ *testing.T, o *owned) runlog.Delivery { return o.wake },
			others: func(_ *testing.T, o *owned) runlog.Delivery { return o.start },
			ended:  "ack",
		},
		"a later one": {owners: func(_ *testing.T, o *owned) runlog.Delivery { return o.wake }, others: later, ended: "ack"},
		"the owner's": {
			owners: func(_ *testing.T, o *owned) runlog.Delivery { return o.wake },
			others: func(_ *testing.T, o *owned) runlog.Delivery { return o.wake },
		},
		"one that the owner has not read": {
			owners: func(t *testing.T, o *owned) runlog.Delivery {
				t.Helper()
				o.append(t, subject.Step, o.first.Process()+"-0@1") // an earlier session failed
				return o.wake
			},
			others: func(_ *testing.T, o *owned) runlog.Delivery { return o.start }, unclaimed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOwned(t)
				if !c.unclaimed {
					close(o.open)
				}
				o.executes(t, c.owners(t, o))
				require.Equal(t, c.ended, o.handed(t, c.others(t, o)))
				if c.unclaimed {
					close(o.open)
				}
				o.outcome <- model.Result{}
				<-o.done
				require.Equal(t, "ack", o.firstEnded.ended)
				st, _ := o.state(t)
				require.Equal(t, wire.StatusCompleted, st.Status)
				require.Equal(t, []string{"first"}, o.calls)
			})
		})
	}
}

// If the owner dies or fails right after it covered another delivery, the run is still in the
// queue: by the owner's own delivery, and by the wake frame for a dead owner's runs.
func TestExecute_ARunGoesOnAfterADeadOwnerCoveredItsDelivery(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(t *testing.T, o *owned){
		"killed, and its delivery lapses": func(t *testing.T, o *owned) {
			t.Helper()
			o.kill()
			require.Equal(t, 1, o.log.Expire())
		},
		"killed, and its runs are put back": func(t *testing.T, o *owned) {
			t.Helper()
			o.kill()
			require.NoError(t, o.firstEnded.Ack(), "without its delivery, only the wake frame is left")
			require.NoError(t, o.exec.Requeue(t.Context(), theRun, o.owner(t)))
		},
		"failed": func(t *testing.T, o *owned) {
			t.Helper()
			o.outcome <- model.Result{Interrupted: fmt.Errorf("redact: %w", runlog.ErrUnavailable)}
			<-o.done
			require.Equal(t, "retry", o.firstEnded.ended)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOwned(t)
				close(o.open)
				o.executes(t, o.wake)
				require.Equal(t, "ack", o.handed(t, o.start))
				after(t, o)
				require.Equal(t, wire.StatusCompleted, o.drained(t))
				require.Equal(t, []string{"first", "second"}, o.calls)
			})
		})
	}
}

// No dispatcher ends a delivery because of an owner without a claim: the dispatcher that receives
// the run claims it.
func TestExecute_ARunGoesOnThoughADispatcherDiesBeforeItsClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t)
		o.executes(t, o.wake)
		require.Equal(t, "ack", o.handed(t, o.start))
		st, _ := o.state(t)
		require.Equal(t, wire.StatusCompleted, st.Status, "the log names no owner")
		o.kill()
		require.Equal(t, []string{"second"}, o.calls)
		require.Equal(t, 1, o.log.Expire())
		require.Equal(t, wire.StatusCompleted, o.drained(t))
		waiting, held := o.log.Backlog()
		require.Zero(t, waiting+held)
	})
}

// owner returns the owner of the run according to its log.
func (o *owned) owner(t *testing.T) frame.Ownership {
	t.Helper()
	now, err := o.exec.Ownership(t.Context(), theRun)
	require.NoError(t, err)
	require.NotEmpty(t, now.Owner)
	return now
}

// A run that another dispatcher has taken over gets no frame: the list of a dead dispatcher's runs may
// be older.
func TestRequeue_LeavesARunOfAnotherOwnerAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOwned(t)
		close(o.open)
		o.executes(t, o.wake)
		require.Equal(t, "ack", o.handed(t, o.start))
		before := len(o.log.Frames())
		require.NoError(t, o.exec.Requeue(t.Context(), theRun, frame.Ownership{Owner: "dead", Epoch: 1}))
		require.Len(t, o.log.Frames(), before)
		o.kill()
		require.NoError(t, o.exec.Requeue(t.Context(), theRun, o.owner(t)))
		require.Len(t, o.log.Frames(), before+1)
		require.Equal(t, wire.StatusCompleted, o.drained(t))
	})
}

// A quarantined run of a dead dispatcher stays quarantined until an operator readmits it. Any
// dispatcher executes it then.
func TestRequeue_LeavesAQuarantinedRunAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, w := newOwned(t), &ward{}
		close(o.open)
		o.quarantine = w
		o.executes(t, o.wake)
		require.Equal(t, "ack", o.handed(t, o.start))
		o.kill()
		require.NoError(t, w.Add(t.Context(), theRun, quarantine.Cause{Reason: quarantine.ReasonFailing}))
		second := o.executor(o.defs, nil)
		before := len(o.log.Frames())
		require.NoError(t, second.Requeue(t.Context(), theRun, o.owner(t)))
		require.Len(t, o.log.Frames(), before)

		w.err = runlog.ErrUnavailable
		require.ErrorIs(t, second.Requeue(t.Context(), theRun, o.owner(t)), runlog.ErrUnavailable, "it is retried")
		w.err, w.runs = nil, nil
		back, err := o.exec.Readmit(t.Context(), theRun)
		require.NoError(t, err)
		require.True(t, back)
		require.Equal(t, wire.StatusCompleted, o.drained(t))
		require.Equal(t, []string{"first", "second"}, o.calls)
	})
}
