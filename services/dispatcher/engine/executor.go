// Package engine executes runs. It folds a run from its log, advances the pure machine, appends the
// resulting events, and performs the effects.
//
// Each run has one writer, the goroutine of its session. Effects run on other goroutines and append
// through the writer. If another process appended frames that end the session, the session drops
// its pending events and the run is loaded again.
package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/definition"
	"waybill.dev/waybill/services/dispatcher/engine/cleartext"
	"waybill.dev/waybill/services/dispatcher/engine/snapshot"
	"waybill.dev/waybill/services/dispatcher/machine"
)

// Config limits execution.
type Config struct {
	Limits machine.Limits
	// AckWait is the time without an extension after which the queue delivers a run again.
	AckWait time.Duration
	// HoldResults is how long a session with calls in flight, or with their results, retries while the
	// log, the redactor or the acceptor is unreachable; 0 hands the run back immediately.
	HoldResults time.Duration
	// MaxBatch limits the calls, or results, of effects in one frame. With more than one, the order
	// of their events depends on goroutine scheduling.
	MaxBatch int
}

// Executor executes runs. It is safe for concurrent use.
type Executor struct {
	cfg  Config
	deps Deps

	// sessions numbers this process's writers.
	sessions atomic.Uint64
	drain    drain
	// announcements are changes of runs that other processes own; see Announce.
	announcements chan announcement

	mu     sync.Mutex // guards what follows
	active map[string]*activeRun
	logged map[logKey]bool
}

// activeRun is a run that a session of this process executes.
type activeRun struct {
	cancel context.CancelCauseFunc
	// handedOutAt is the position of the delivered frame.
	handedOutAt uint64
	// claimed reports that the log contains the claim of the session.
	claimed atomic.Bool
	// begun is called after each append. The first is the run's first step in this process.
	begun func()
	// logMoved signals that another writer appended to the run's log; capacity 1.
	logMoved chan struct{}
	// joined are other deliveries of the run that arrived during the session; guarded by
	// Executor.mu.
	joined []joinedDelivery
}

// joinedDelivery is a delivery that waits for the end of its run's session.
type joinedDelivery struct {
	delivery *delivery
	release  func()
}

// notifyLogMoved makes the session read the log.
func (h *activeRun) notifyLogMoved() {
	select {
	case h.logMoved <- struct{}{}:
	default: // a notification is pending
	}
}

// New returns an executor.
func New(cfg Config, d Deps) *Executor {
	return &Executor{
		cfg:           cfg,
		deps:          d.orDefaults(),
		announcements: make(chan announcement, maxAnnouncements),
		active:        map[string]*activeRun{},
		logged:        map[logKey]bool{},
		drain:         newDrain(),
	}
}

// Process is the id of this process in the log and in the run list.
func (e *Executor) Process() string { return e.deps.Leases.Process() }

func (e *Executor) newWriter() string { return e.writerOf(e.Process()) }

// writerOf returns a new writer name for a process.
func (e *Executor) writerOf(process string) string {
	return process + "-" + strconv.FormatUint(e.sessions.Add(1), 36)
}

var (
	// errLost ends a session because of a frame in the log: the run was cancelled or paused, or
	// another dispatcher claimed it.
	errLost = fmt.Errorf("run was taken over: %w", runlog.ErrConflict)
	// errAborted is the cause of a session that must read the log immediately.
	errAborted = errors.New("run was changed by a request")
)

// Abort makes the session of a run, if this process has one, cancel its effects and read the log.
// It is called after a cancellation was appended.
func (e *Executor) Abort(runID string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.active[runID]; h != nil {
		h.cancel(errAborted)
	}
}

// notifySession makes the session of a run, if this process has one, read the frames of other
// writers.
func (e *Executor) notifySession(runID string) { e.NotifyAppended(runID, 0) }

// reserveRun reserves a run for one session of this process. If a session executes it, the delivery
// joins that session: the session reads the log, and the delivery is executed afterwards.
func (e *Executor) reserveRun(d *delivery) (h *activeRun, ok bool) {
	f := d.message.Frame()
	runID := f.Run.RunID
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.active[runID]; h != nil {
		h.joined = append(h.joined, joinedDelivery{d, d.keepExtended()})
		h.notifyLogMoved()
		return nil, false
	}
	h = &activeRun{handedOutAt: f.Pos, cancel: func(error) {}, logMoved: make(chan struct{}, 1)}
	e.active[runID] = h
	return h, true
}

// leaveRun ends the reservation and returns the deliveries that joined it.
func (e *Executor) leaveRun(runID string, h *activeRun) []joinedDelivery {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.active, runID)
	return h.joined
}

// Execute executes a delivered run as far as possible, and ends the delivery.
func (e *Executor) Execute(ctx context.Context, message runlog.Delivery) {
	for d := newDelivery(e, message); d != nil; {
		d.process = runlog.ProcessOf(message) // also for joined deliveries, which depend on the same permits
		d = e.executeDelivery(ctx, d)
	}
}

// executeDelivery executes the run of one delivery and ends that delivery. next is another delivery
// of the run that arrived during the session. The session may not have seen its frame.
func (e *Executor) executeDelivery(ctx context.Context, d *delivery) (next *delivery) {
	r := d.message.Frame().Run
	if e.draining() {
		e.logEndFailure(d.endWith(d.message.Return), r, "return")
		return nil
	}
	h, ok := e.reserveRun(d)
	if !ok {
		return nil
	}
	e.deps.Forget(r.Tenant, r.RunID) // the session sets the next timer
	err := e.enterDelivered(ctx, d)
	if err == nil {
		err = e.contain(r.RunID, func() error { return e.runSessions(ctx, d, h) })
	}
	release := d.keepExtended() // reading logs may take long
	switch {
	case errors.Is(err, errCancelling):
		err = e.contain(r.RunID, func() error { _, err := e.finishCancel(ctx, r); return err })
	case errors.Is(err, errOrphaned):
		err = e.contain(r.RunID, func() error { return e.cancelOrphan(ctx, r.Tenant, r.RunID) })
	}
	if errors.Is(err, lifecycle.ErrPanic) {
		err = e.endPanicked(ctx, r, h.handedOutAt)
	}
	release()
	for _, j := range e.leaveRun(r.RunID, h) {
		j.release()
		pos := j.delivery.message.Frame().Pos
		switch {
		case pos == d.message.Frame().Pos: // the same message, delivered again: it is ended once
			d = j.delivery
		case next != nil && pos != next.message.Frame().Pos:
			e.logEndFailure(next.endWith(next.message.Ack), r, "ack")
			next = j.delivery
		default:
			next = j.delivery
		}
	}
	e.endDelivery(ctx, d, err)
	return next
}

// maxAttempts limits consecutive sessions of a run that end because its log moved on.
const maxAttempts = 8

// runSessions runs sessions until one ends for another reason than a change of the log.
func (e *Executor) runSessions(ctx context.Context, d *delivery, h *activeRun) (err error) {
	h.begun = e.measureStart()
	for n := range maxAttempts {
		err = e.withCancel(ctx, h, func(ctx context.Context) error { return e.runSession(ctx, d, h, n > 0) })
		if !errors.Is(err, errLost) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// withCancel runs a session that Abort and LeaseLost can cancel.
func (e *Executor) withCancel(ctx context.Context, h *activeRun, session func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	e.mu.Lock()
	h.cancel = cancel
	e.mu.Unlock()
	return session(ctx)
}

// endDelivery ends a delivery according to the result of its run.
func (e *Executor) endDelivery(ctx context.Context, d *delivery, err error) {
	f := d.message.Frame()
	why, giveUp := shouldQuarantine(err, e.settleHistory(ctx, d, err))
	switch {
	case err == nil, errors.Is(err, runlog.ErrErased), errors.Is(err, errReleased), // the release frame is in the queue
		errors.Is(err, errQuarantined):
		e.logEndFailure(d.endWith(d.message.Ack), f.Run, "ack")
	case errors.Is(err, errCovered):
		e.deps.Metrics.Conflict()
		e.logEndFailure(d.endWith(d.message.Ack), f.Run, "ack")
	case errors.Is(err, errElsewhere): // the owner may end it
		e.deps.Metrics.Conflict()
	case errors.Is(err, errLeaseLost): // another dispatcher may have the run
	case ctx.Err() != nil:
		e.logEndFailure(d.endWith(d.message.Return), f.Run, "return")
	case giveUp:
		e.quarantineRun(ctx, d, why, err)
	case errors.Is(err, errPaused):
		e.logEndFailure(d.endWith(d.message.Retry), f.Run, "retry")
	case needsLaterEngine(err):
		e.logNeedsLaterEngine(f.Run.RunID, err)
		e.logEndFailure(d.endWith(d.message.Retry), f.Run, "retry")
	default:
		e.deps.Logger.Warn("run handed back", "run_id", f.Run.RunID, "error", err)
		e.logEndFailure(d.endWith(d.message.Retry), f.Run, "retry")
	}
}

// logEndFailure logs a delivery that could not be ended. The queue delivers it again.
func (e *Executor) logEndFailure(err error, r subject.Run, what string) {
	if err != nil {
		e.deps.Logger.Debug("delivery not ended", "run_id", r.RunID, "what", what, "error", err)
	}
}

// measureStart measures the time until the first call of begun.
func (e *Executor) measureStart() (begun func()) {
	e.deps.FirstAppend.Enter(e.deps.Clock())
	return sync.OnceFunc(func() { e.deps.FirstAppend.Leave(e.deps.Clock()) })
}

// runSession runs one session from the state of the log until the run can go no further. again
// reports an earlier session under the same delivery.
func (e *Executor) runSession(ctx context.Context, d *delivery, h *activeRun, again bool) error {
	defer h.begun()
	h.claimed.Store(false)
	f := d.message.Frame()
	release := d.keepExtended() // reading the log may take long
	defer release()
	st, head, err := e.loadForDelivery(ctx, d.message, again)
	if errors.Is(err, cleartext.ErrGone) {
		return e.endWithoutCleartext(ctx, f.Run, f.Pos)
	}
	if err != nil {
		return err
	}
	ctx = guardReplay(ctx, st.Record)
	if st.Status.Terminal() {
		e.eraseEnded(ctx, f.Run, st)
		e.closeSecrets(ctx, st.Record) // the process that ended the run may have died before this
		return e.notifyRelatives(ctx, st)
	}
	if err := e.checkOwnership(ctx, f.Run, f.Pos, head.Ownership); err != nil {
		return err
	}
	if err := e.countDeath(ctx, d, st, head.Ownership); err != nil {
		return err
	}
	if err := e.checkMustEnd(ctx, st); err != nil {
		return err
	}
	plan, err := e.loadPlan(ctx, st)
	if err != nil {
		return err
	}
	done, err := e.openSecrets(ctx, st.Record)
	if err != nil {
		return err
	}
	if st, head, err = e.copyHistory(ctx, st, head); err != nil {
		return asLost(err)
	}
	m, err := e.newMachine(ctx, plan, st)
	if err != nil {
		return err
	}
	s := newSession(e, d, h, f.Run, head, m)
	defer func() {
		s.effects.stop()
		s.places.keepOnly(nil)
		done(s.machine.State().Status)
	}()
	if s.spans, err = e.spans(ctx, f.Run, st.Record, head, plan.Def); err != nil {
		return err
	}
	if err := s.readChildren(ctx); err != nil {
		return err
	}
	release() // the session extends the delivery from here on
	if err := s.runMachine(ctx); err != nil {
		return err
	}
	defer d.keepExtended()()
	return e.notifyRelatives(ctx, s.machine.State())
}

// loadForDelivery uses a start frame that is delivered for the first time as the whole log; the
// first append proves that. Other deliveries read the log.
func (e *Executor) loadForDelivery(
	ctx context.Context, d runlog.Delivery, again bool,
) (*runstate.State, frame.Head, error) {
	f := d.Frame()
	if f.Kind == subject.Start && !d.Redelivered() && !again {
		rec, err := f.Record()
		if err != nil {
			return nil, frame.Head{}, errors.Join(frame.ErrDamaged, err)
		}
		if err := runstate.Refuse(rec.RunID, rec.EngineVersion); err != nil {
			return nil, frame.Head{}, err
		}
		if rec.Masking == "" {
			return runstate.New(rec), f.Head(), nil
		}
	}
	load := e.load
	if f.Kind == subject.Wake && !d.Redelivered() && f.First < snapshot.Every {
		load = e.loadWhole // too short for a snapshot
	}
	st, head, err := load(ctx, f.Run)
	if err == nil && head.Pos < f.Pos { // a server of a cluster may lag behind the one that delivered the frame
		return nil, frame.Head{}, fmt.Errorf("%w: it has the run up to %d only, and hands out %d",
			runlog.ErrUnavailable, head.Pos, f.Pos)
	}
	return st, head, err
}

// loadPlan returns the definition of a run, and the rules that it is executed by.
func (e *Executor) loadPlan(ctx context.Context, st *runstate.State) (machine.Plan, error) {
	entry, err := definition.OfRun(ctx, e.deps.Definitions, st.Record)
	if fault.CodeOf(err) == fault.WorkflowNotFound {
		err = errors.Join(errNoDefinition, err)
	}
	if err != nil {
		return machine.Plan{}, err
	}
	return e.deps.plan(entry), nil
}
