package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/engine/quarantine"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/queue"
)

// ward records quarantined runs, and counts failures. No process dies.
type ward struct {
	runs     []subject.Run
	causes   []quarantine.Cause
	failures int
	err      error
}

func (w *ward) Add(_ context.Context, r subject.Run, why quarantine.Cause) error {
	if w.err == nil {
		why.Pos = 0
		w.runs, w.causes = append(w.runs, r), append(w.causes, why)
	}
	return w.err
}

func (w *ward) Holds(_ context.Context, r subject.Run, _ uint64) (bool, error) {
	return slices.Contains(w.runs, r), w.err
}

func (w *ward) CountFailure(context.Context, subject.Run) (int, error) {
	w.failures++
	return w.failures, w.err
}

func (w *ward) Enter(context.Context, subject.Run, uint64, string, func(string) (bool, error)) (quarantine.Deaths, error) {
	return quarantine.Deaths{}, nil
}

func (w *ward) CountDeath(context.Context, subject.Run, uint64, string, int) (quarantine.Deaths, error) {
	return quarantine.Deaths{}, nil
}

func (w *ward) Leave(context.Context, subject.Run, string) error { return nil }

func (w *ward) Forget(context.Context, subject.Run) error {
	w.failures = 0
	return w.err
}

// quarantined is a rig whose only run, of one node, was found damaged and left the queue. mend
// repairs its log.
func quarantined(t *testing.T, nodeDoc string, damaged uint64) (r *rig, w *ward, mend func()) {
	t.Helper()
	r, w = newRig(t, define(t, nodeDoc), nil), &ward{}
	r.quarantine = w
	r.exec = r.executor(r.defs, nil)
	r.create(t)
	if damaged > 1 {
		r.next(t)
	}
	head := lastFrame(t, r).Head()
	r.log.Damage(damaged)
	require.NoError(t, r.exec.Wake(t.Context(), theRun, head))
	for waiting, _ := r.log.Backlog(); waiting > 0; waiting, _ = r.log.Backlog() {
		d, err := r.log.Next(t.Context())
		require.NoError(t, err)
		r.exec.Execute(t.Context(), seenBefore{d})
	}
	waiting, held := r.log.Backlog()
	require.Equal(t, []int{0, 0}, []int{waiting, held}, "it occupies no place in the queue")
	return r, w, func() { r.log.Damage(damaged) }
}

// seenBefore is a redelivery, so that the log is read.
type seenBefore struct{ runlog.Delivery }

func (seenBefore) Redelivered() bool { return true }

func lastFrame(t *testing.T, r *rig) *frame.Frame {
	t.Helper()
	f, err := r.log.Last(t.Context(), theRun)
	require.NoError(t, err)
	return f
}

func TestReadmit_ADamagedRunGoesOnOnceItsLogIsWhole(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		node    string
		damaged uint64
	}{
		"damaged before its first session": {nodeJSON("a", "core.noop", "{}"), 1},
		"damaged in the middle":            {nodeJSON("w", "core.delay", `{"ms":1}`), 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, w, mend := quarantined(t, tc.node, tc.damaged)
			require.NotEmpty(t, w.runs)
			require.Equal(t, theRun, w.runs[0])
			before := len(r.log.Frames())
			_, err := r.exec.Readmit(t.Context(), theRun)
			require.ErrorIs(t, err, frame.ErrDamaged)
			require.Len(t, r.log.Frames(), before, "no frame follows a damaged one")

			mend()
			back, err := r.exec.Readmit(t.Context(), theRun)
			require.NoError(t, err)
			require.True(t, back)
			_, frames := r.state(t)
			require.Len(t, frames, before+1)
			require.Equal(t, subject.Wake, frames[before].Kind, "and no event")
			for {
				r.next(t)
				st, _ := r.state(t)
				if st.Status.Terminal() {
					require.Equal(t, wire.StatusCompleted, st.Status)
					break
				}
				require.NoError(t, r.exec.Wake(t.Context(), theRun, lastFrame(t, r).Head()))
			}
		})
	}
}

func TestExecute_ADamagedRunStaysInTheQueueUntilItIsNotedElsewhere(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, nodeJSON("a", "core.noop", "{}")), nil)
	w := &ward{err: errors.New("away")}
	r.quarantine = w
	r.exec = r.executor(r.defs, nil)
	r.create(t)
	r.log.Damage(1)
	execute := func() {
		d, err := r.log.Next(t.Context())
		require.NoError(t, err)
		r.exec.Execute(t.Context(), seenBefore{d})
	}
	execute()
	waiting, held := r.log.Backlog()
	require.Equal(t, 1, waiting+held)
	w.err = nil
	execute()
	waiting, held = r.log.Backlog()
	require.Zero(t, waiting+held)
	require.Equal(t, []subject.Run{theRun}, w.runs)
}

// A run that ended while it was quarantined gets no further frame.
func TestReadmit_ARunThatHasEndedIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, nodeJSON("a", "core.noop", "{}")), nil)
	r.create(t)
	r.next(t)
	back, err := r.exec.Readmit(t.Context(), theRun)
	require.NoError(t, err)
	require.False(t, back)
	_, frames := r.state(t)
	require.Len(t, frames, 2)
}

// born appends the start frame of a relative of the rig's run.
func (r *rig) born(t *testing.T, parent *wire.Parent, fork *wire.Fork) *wire.RunRecord {
	t.Helper()
	rec := &wire.RunRecord{
		RunID: theFork.RunID, WorkflowID: theFork.WorkflowID, Owner: wire.Owner{Tenant: theFork.Tenant}, EngineVersion: 1,
		CreatedAt: wire.FormatTime(time.Now()), Parent: parent, Fork: fork,
	}
	body, err := json.Marshal(rec)
	require.NoError(t, err)
	_, err = r.log.Append(t.Context(), frame.NewStart(theFork, body), 0)
	require.NoError(t, err)
	return rec
}

// readmits checks whether Readmit of the relative waits while a frame of the rig's run is damaged.
func (r *rig) readmits(t *testing.T, damaged uint64, waits bool) {
	t.Helper()
	r.log.Damage(damaged)
	before := len(r.log.Frames())
	back, err := r.exec.Readmit(t.Context(), theFork)
	if waits {
		require.ErrorIs(t, err, frame.ErrDamaged)
		require.False(t, back)
		require.Len(t, r.log.Frames(), before, "it would be quarantined again")
		r.log.Damage(damaged)
		back, err = r.exec.Readmit(t.Context(), theFork)
	}
	require.NoError(t, err)
	require.True(t, back)
	last, err := r.log.Last(t.Context(), theFork)
	require.NoError(t, err)
	require.Equal(t, subject.Wake, last.Kind)
}

// A child that reports to its parent reads the whole parent. A child that ends with its parent
// reads the parent's end.
func TestReadmit_WaitsForAParentThatTheRunReads(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		awaited, cascade bool
		damaged          uint64 // 1 or 2, the position of a frame
		waits            bool
	}{
		"awaited":                          {awaited: true, damaged: 1, waits: true},
		"cancelled with it":                {cascade: true, damaged: 2, waits: true},
		"cancelled with it, its end whole": {cascade: true, damaged: 1},
		"neither: on its own":              {damaged: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, define(t, gateNode), nil)
			r.create(t)
			r.next(t)
			r.born(t, &wire.Parent{
				RunID:      theRun.RunID,
				WorkflowID: "wf",
				NodeID:     "call",
				Depth:      1,
				Awaited:    tc.awaited,
				Cascade:    tc.cascade,
			}, nil)
			r.readmits(t, tc.damaged, tc.waits)
		})
	}
}

// A parent reads a child that its node waits for, and all its children while it is being cancelled.
func TestReadmit_WaitsForAChildThatTheRunReads(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		config           string
		cancelled, waits bool
	}{
		"awaited":                      {waits: true},
		"not awaited":                  {config: `,"waitForCompletion":false`},
		"not awaited, to be cancelled": {config: `,"waitForCompletion":false`, cancelled: true, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFamily(t)
			gate := nodeJSON("gate", "core.approvalGate", approvalJSON)
			f.defs.add(t, "leaf", ``, gate)
			f.defs.add(t, "parent", ``, gate, call(`{"workflowId":"leaf"`+tc.config+`}`))
			f.create(t, "parent", `{}`)
			x := f.live()
			f.drain(t, x)
			i := slices.IndexFunc(f.log.Frames(), func(fr *frame.Frame) bool { return fr.Run.WorkflowID == "leaf" })
			require.Positive(t, i)
			f.log.Damage(uint64(i) + 1)
			if tc.cancelled {
				_, _, err := x.Cancel(t.Context(), "acme", "run_p", "enough", "ann")
				require.NoError(t, err)
				require.Equal(t, wire.StatusCancelling, f.state(t, "run_p").Status)
			}
			parent := subject.Run{Tenant: "acme", RunID: "run_p"}
			back, err := x.Readmit(t.Context(), parent)
			if tc.waits {
				require.ErrorIs(t, err, frame.ErrDamaged)
				require.False(t, back)
				f.log.Damage(uint64(i) + 1)
				back, err = x.Readmit(t.Context(), parent)
			}
			require.NoError(t, err)
			require.True(t, back)
		})
	}
}

// A fork reads its source until it has copied its history, while it ends within a node's step, and
// if it replays. A branch that went on does not.
func TestReadmit_WaitsForASourceThatTheForkReads(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		mode wire.ForkMode
		// torn reports that the history ends before the question of a waiting node.
		torn         bool
		copied, more bool
		waits        bool
	}{
		"a branch that has no history":   {mode: wire.ForkBranch, waits: true},
		"a branch that has its history":  {mode: wire.ForkBranch, copied: true, waits: true},
		"a branch that has gone on":      {mode: wire.ForkBranch, copied: true, more: true},
		"a branch that has gone on torn": {mode: wire.ForkBranch, torn: true, copied: true, more: true, waits: true},
		"a replay that has no history":   {mode: wire.ForkReplay, waits: true},
		"a replay that has gone on":      {mode: wire.ForkReplay, copied: true, more: true, waits: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, define(t, gateNode), nil)
			r.create(t)
			r.next(t)
			_, events, _ := r.eventsOf(t, theRun)
			from := len(events)
			if tc.torn {
				from = 1 + slices.IndexFunc(events, func(e wire.Event) bool { return e.Type == wire.EventNodeSuspended })
			}
			rec := r.born(t, nil, &wire.Fork{SourceRunID: theRun.RunID, Mode: tc.mode, FromSeq: from, Head: len(events)})
			if tc.copied {
				var has []wire.Event
				for _, e := range events[:from] {
					has = append(has, machine.CopyEvent(rec, e, time.Now()))
				}
				if tc.more {
					has = append(has, wire.Draft{Type: wire.EventLogAppended}.Place(theFork.RunID, from, time.Now()))
				}
				last, err := r.log.Last(t.Context(), theFork)
				require.NoError(t, err)
				_, err = r.log.Append(t.Context(), frame.New(theFork, subject.Step, last.Head(), has), last.Pos)
				require.NoError(t, err)
			}
			r.readmits(t, 2, tc.waits)
		})
	}
}

// A source that lost its end still passes the chain check.
func TestReadmit_AForkWaitsForTheEndOfItsSource(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, gateNode), nil)
	r.create(t)
	r.born(t, nil, &wire.Fork{SourceRunID: theRun.RunID, Mode: wire.ForkBranch, FromSeq: 2, Head: 2})
	r.next(t)
	end := lastFrame(t, r)
	r.log.CutOff(2)
	for range 3 {
		_, err := r.exec.Readmit(t.Context(), theFork)
		require.ErrorIs(t, err, frame.ErrDamaged)
		require.Len(t, r.log.Frames(), 2, "one wake frame for all sweeps")
	}

	_, err := r.log.Append(t.Context(), end, 1)
	require.NoError(t, err)
	_, err = r.exec.Readmit(t.Context(), theFork)
	require.NoError(t, err)
	last, err := r.log.Last(t.Context(), theFork)
	require.NoError(t, err)
	require.Equal(t, subject.Wake, last.Kind)
}

// A waiting run with a damaged log is quarantined once, when its timer is due. Nothing is appended.
func TestWakeLost_QuarantinesARunWithADamagedLog(t *testing.T) {
	t.Parallel()
	r, w := newRig(t, define(t, nodeJSON("w", "core.delay", `{"ms":60000}`)), nil), &ward{}
	r.quarantine = w
	r.exec = r.executor(r.defs, nil)
	r.create(t)
	r.next(t)
	r.log.Damage(1)
	for range 3 {
		require.False(t, wakeLost(t, r.exec, theRun))
	}
	require.Len(t, r.log.Frames(), 2)
	require.Equal(t, []quarantine.Cause{{Reason: quarantine.ReasonDamaged}}, w.causes)
	r.log.Damage(1)
	require.False(t, wakeLost(t, r.exec, theRun), "a check of the quarantine wakes it")
	w.runs = nil
	require.True(t, wakeLost(t, r.exec, theRun))
	require.Equal(t, subject.Wake, lastFrame(t, r).Kind)
}

// A timer that is due does not take a run out of quarantine, whatever the reason. An answer, or
// another change from outside, does so once.
func TestWakeLost_LeavesAQuarantinedRunInQuarantine(t *testing.T) {
	t.Parallel()
	for _, reason := range quarantine.Reasons() {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, define(t, nodeJSON("w", "core.delay", `{"ms":60000}`)), nil)
			list := quarantine.New(quarantine.DefaultConfig(), kvmemory.New(), time.Now, slog.New(slog.DiscardHandler))
			r.quarantine = list
			r.exec = r.executor(r.defs, nil)
			r.create(t)
			r.next(t)
			last := lastFrame(t, r)
			require.NoError(t, list.Add(t.Context(), theRun, quarantine.Cause{Reason: reason, Tries: 10, Pos: last.Pos}))
			for range 3 {
				r.ahead.Add(int64(time.Hour))
				require.False(t, wakeLost(t, r.exec, theRun))
			}
			require.Len(t, r.log.Frames(), 2)

			_, err := r.exec.Pause(t.Context(), "acme", "run_1", "", "", "ann")
			require.NoError(t, err)
			_, err = r.exec.Resume(t.Context(), "acme", "run_1", "")
			require.NoError(t, err)
			last = lastFrame(t, r)
			r.ahead.Add(int64(time.Hour))
			require.True(t, wakeLost(t, r.exec, theRun), "it left the quarantine")
			require.NoError(t, list.Add(t.Context(), theRun, quarantine.Cause{Reason: reason, Tries: 10, Pos: last.Pos + 1}))
			r.ahead.Add(int64(time.Hour))
			require.False(t, wakeLost(t, r.exec, theRun))
		})
	}
}

// A run that fails at every delivery is delivered ten times, also by several dispatchers that restart.
// Its timer and the end of its dispatchers do not begin the count again.
func TestExecute_AFailingRunIsDeliveredABoundedNumberOfTimes(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, nodeJSON("w", "core.delay", `{"ms":60000}`)), nil)
	list := quarantine.New(quarantine.DefaultConfig(), kvmemory.New(), time.Now, slog.New(slog.DiscardHandler))
	r.quarantine, r.alive = list, true
	r.exec = r.executor(r.defs, nil)
	r.create(t)
	r.next(t)
	r.log.SetRetryDelay(0)
	failing := lostDefinitions{errors.New("odd")}
	deliveries := 0
	for range 40 {
		r.ahead.Add(int64(time.Hour))
		x := r.executor(failing, nil)
		wakeLost(t, x, theRun)
		if waiting, _ := r.log.Backlog(); waiting == 0 {
			continue
		}
		d, err := r.log.Next(t.Context())
		require.NoError(t, err)
		x.Execute(t.Context(), d)
		deliveries++
	}
	rec, err := list.Get(t.Context(), "acme", "run_1")
	require.NoError(t, err)
	require.Equal(t, 10, rec.Tries)
	require.Less(t, deliveries, 21, "each of its frames in the queue is delivered at most once more")
	require.Less(t, len(r.log.Frames()), 14)
}

// Damage between the first and the last frame is found by the dispatcher that executes the run. The
// run gets one wake frame, not one per sweep.
func TestWakeLost_WakesARunOnceThatIsDamagedInTheMiddle(t *testing.T) {
	t.Parallel()
	r := newRig(t, define(t, nodeJSON("w", "core.delay", `{"ms":60000}`)), nil)
	r.create(t)
	r.next(t)
	last := lastFrame(t, r)
	_, err := r.log.Append(t.Context(), frame.New(theRun, subject.Step, last.Head(), nil).By("d-1"), last.Pos)
	require.NoError(t, err)
	r.log.Damage(2)
	require.True(t, wakeLost(t, r.exec, theRun))
	for i := range 3 {
		r.ahead.Store(int64(10*lease) * int64(i+1))
		require.False(t, wakeLost(t, r.exec, theRun))
	}
	require.Len(t, r.log.Frames(), 4)
}

// After the repair the run is readmitted and completes, although its delivery was acknowledged long
// ago.
func TestQuarantine_AMendedRunEndsByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, define(t, nodeJSON("w", "core.delay", `{"ms":1000}`)), nil)
		list := quarantine.New(quarantine.DefaultConfig(), kvmemory.New(), time.Now, slog.New(slog.DiscardHandler))
		r.quarantine = list
		r.exec = r.executor(r.defs, nil)
		list.Bind(r.exec)
		r.create(t)
		r.next(t)
		time.Sleep(2 * time.Second) //nolint:forbidigo // in a bubble
		head := lastFrame(t, r).Head()
		r.log.Damage(1)
		require.NoError(t, r.exec.Wake(t.Context(), theRun, head))

		ctx, cancel := context.WithCancel(t.Context())
		var g errgroup.Group
		g.Go(func() error { return queue.NewPool(r.log, r.exec, 1, slog.New(slog.DiscardHandler)).Run(ctx) })
		g.Go(func() error { return list.Run(ctx) })
		defer func() {
			cancel()
			require.ErrorIs(t, g.Wait(), context.Canceled)
		}()
		time.Sleep(30 * time.Minute) //nolint:forbidigo // in a bubble
		require.Len(t, r.log.Frames(), 3, "a damaged run gets no frame")
		waiting, held := r.log.Backlog()
		require.Equal(t, []int{0, 0}, []int{waiting, held}, "it occupies no place in the queue")

		r.log.Damage(1)
		time.Sleep(15 * time.Minute) //nolint:forbidigo // in a bubble
		st, frames := r.state(t)
		require.Equal(t, wire.StatusCompleted, st.Status)
		require.Len(t, frames, 5, "one wake frame and the end")
	})
}
