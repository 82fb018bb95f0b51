// Package engine carries runs out: it folds a run from its log, lets the pure
// machine say what comes next, appends that, and performs the effects.
//
// Each run has one writer, the goroutine of its session. Effects run beside it
// and append through it. A session that finds the log moved on by somebody else
// has lost its run, drops what it was doing, and looks again.
package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/queuetime"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/cleartext"
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/snapshot"
)

// Config bounds execution.
type Config struct {
	Limits machine.Limits
	// AckWait is how long the queue waits for an extension of a delivery before it hands it out
	// again.
	AckWait time.Duration
	// HoldResults is how long the result of an effect is held while the log or the redactor cannot
	// be reached; 0 hands the run back at once.
	HoldResults time.Duration
	// MaxBatch bounds how many calls, or ends, of effects go into one frame. More than one leaves
	// the order of what they tell next to whoever comes first.
	MaxBatch int
}

// Deps are the executor's collaborators.
type Deps struct {
	Log      runlog.Log
	Redactor Redactor
	// Secrets is nil where tenants bring no keys.
	Secrets     Secrets
	Acceptor    Acceptor
	Definitions Definitions
	Models      Models
	// Children starts runs for nodes that want them; nil: none can be started.
	Children Children
	Types    node.Catalog
	// Gate decides about models; nil: what nodes require of them is opaque.
	Gate machine.Gate
	// NodeSecrets looks for the secrets that nodes need; nil: they are not looked for.
	NodeSecrets machine.Secrets
	// Policy looks for rules against models; nil: there are none.
	Policy machine.Policy
	// Cleartext keeps the clear values of masked runs; nil: there are no such runs.
	Cleartext CleartextStore
	// Quarantine remembers runs whose log is damaged; nil: they do not come back.
	Quarantine Quarantine
	// Backlog reports that runs wait in the queue; nil: unknown.
	Backlog func() bool
	// Leases says which processes own runs; nil: no other process executes runs.
	Leases Leases
	// Peers reaches the owners of runs; nil: there are none beside this process.
	Peers Peers
	// Snapshots keeps folded states of long runs; nil disables them.
	Snapshots *snapshot.Keeper
	// Capabilities are the runtime capabilities of the host.
	Capabilities []string
	Clock        func() time.Time
	Logger       *slog.Logger
	// Spans takes the spans of runs; nil: they are not exported.
	Spans Spans
	// Metrics is told what is done here; nil: nobody counts.
	Metrics Metrics
	// FirstAppend measures how long runs that were handed out take to their first append; nil: nobody does.
	FirstAppend *queuetime.Meter
	// Wait is told when a run sleeps until an instant and holds no executor.
	Wait func(run subject.Run, head frame.Head, due time.Time)
	// Forget is told when a run that may sleep will not wake.
	Forget func(tenant, runID string)
}

// Executor carries out runs. It is safe for concurrent use.
type Executor struct {
	cfg  Config
	deps Deps

	// sessions numbers this process's writers.
	sessions atomic.Uint64
	drain    drain
	// announcements are changes of runs that their owners are to read; see Announce.
	announcements chan announcement
	// drainOnce and cutOnce guard the channels of drain.
	drainOnce, cutOnce sync.Once

	mu     sync.Mutex // guards what follows
	active map[string]*activeRun
	logged map[logKey]bool
	// failures counts failures in a row that are the run's own; see setback.
	failures map[string]int
}

// activeRun is a run that a session of this process executes.
type activeRun struct {
	cancel context.CancelCauseFunc
	// handedOutAt is the position of the frame that handed the run out.
	handedOutAt uint64
	// claimed reports that the log has the claim of the session.
	claimed atomic.Bool
	// logMoved signals that others appended to the run's log; capacity 1.
	logMoved chan struct{}
	// joined are further deliveries of the run that came meanwhile; guarded by Executor.mu.
	joined []joinedDelivery
}

// joinedDelivery is a delivery that waits for the session of its run.
type joinedDelivery struct {
	delivery *delivery
	release  func()
}

// notifyLogMoved has the session read the log.
func (h *activeRun) notifyLogMoved() {
	select {
	case h.logMoved <- struct{}{}:
	default: // it will
	}
}

// New makes an executor.
func New(cfg Config, d Deps) *Executor {
	if d.Metrics == nil {
		d.Metrics = noMetrics{}
	}
	if d.Backlog == nil {
		d.Backlog = func() bool { return false }
	}
	if d.Leases == nil {
		d.Leases = soleProcess{rand.Text()}
	}
	if d.Snapshots == nil {
		d.Snapshots = snapshot.Disabled(d.Log)
	}
	return &Executor{
		cfg: cfg, deps: d, announcements: make(chan announcement, maxAnnouncements), active: map[string]*activeRun{}, logged: map[logKey]bool{}, failures: map[string]int{},
		drain: drain{begun: make(chan struct{}), cut: make(chan struct{})},
	}
}

// Process is the id by which the log and the run list name this process.
func (e *Executor) Process() string { return e.deps.Leases.Process() }

func (e *Executor) newWriter() string { return e.writerOf(e.Process()) }

// writerOf is the name of another writer of a process.
func (e *Executor) writerOf(process string) string {
	return process + "-" + strconv.FormatUint(e.sessions.Add(1), 36)
}

var (
	// errLost says that the log has a frame that ends the session: the run was cancelled or
	// paused, or another dispatcher claimed it.
	errLost = fmt.Errorf("run was taken over: %w", runlog.ErrConflict)
	// errAborted is the cause of a session that was asked to look again at once.
	errAborted = errors.New("run was changed by a request")
)

// Abort makes the session of a run, if this process has one, drop its effects
// and look at the log again. Called after a cancel was appended.
func (e *Executor) Abort(runID string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.active[runID]; h != nil {
		h.cancel(errAborted)
	}
}

// notifySession has the session of a run, if this process has one, read what others appended.
func (e *Executor) notifySession(runID string) { e.Moved(runID, 0) }

// reserveRun reserves a run for one session of this process. If it has one, the delivery joins it: the
// session reads the log, and whoever runs it takes the delivery up afterwards.
func (e *Executor) reserveRun(l *delivery) (h *activeRun, ok bool) {
	f := l.message.Frame()
	runID := f.Run.RunID
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.active[runID]; h != nil {
		h.joined = append(h.joined, joinedDelivery{l, l.keepExtended()})
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

// Execute takes a handed-out run as far as it goes, and ends the delivery.
func (e *Executor) Execute(ctx context.Context, d runlog.Delivery) {
	for l := newDelivery(e, d); l != nil; {
		l.process = runlog.ProcessOf(d) // also of deliveries that join it: what it holds counts for them
		l = e.executeDelivery(ctx, l)
	}
}

// executeDelivery executes the run of one delivery and ends it. next is another delivery of the same run that
// came meanwhile: what it was appended for may not have been seen.
func (e *Executor) executeDelivery(ctx context.Context, l *delivery) (next *delivery) {
	r := l.message.Frame().Run
	if e.draining() {
		e.logEndFailure(l.endWith(l.message.Return), r, "return")
		return nil
	}
	h, ok := e.reserveRun(l)
	if !ok {
		return nil
	}
	err := e.contain(r.RunID, func() error { return e.runSessions(ctx, l, h) })
	kept := l.keepExtended() // there may be logs to read
	switch {
	case errors.Is(err, errCancelling):
		err = e.contain(r.RunID, func() error { _, err := e.finishCancel(ctx, r); return err })
	case errors.Is(err, errOrphaned):
		err = e.contain(r.RunID, func() error { return e.cancelOrphan(ctx, r.Tenant, r.RunID) })
	}
	if errors.Is(err, lifecycle.ErrPanic) {
		err = e.endPanicked(ctx, r, h.handedOutAt)
	}
	kept()
	for _, j := range e.leaveRun(r.RunID, h) {
		j.release()
		pos := j.delivery.message.Frame().Pos
		switch {
		case pos == l.message.Frame().Pos: // the same message, handed out again: it has one end
			l = j.delivery
		case next != nil && pos != next.message.Frame().Pos:
			e.logEndFailure(next.endWith(next.message.Ack), r, "ack")
			next = j.delivery
		default:
			next = j.delivery
		}
	}
	e.endDelivery(ctx, l, err)
	return next
}

// maxAttempts bounds how often a run is attempted in a row because its log moved on.
const maxAttempts = 8

// runSessions runs sessions until one is not ended by a change of the log.
func (e *Executor) runSessions(ctx context.Context, l *delivery, h *activeRun) (err error) {
	begun := e.measureStart()
	for n := range maxAttempts {
		err = e.withCancel(ctx, h, func(ctx context.Context) error { return e.runSession(ctx, l, h, begun, n > 0) })
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

// endDelivery ends a delivery by what became of its run.
func (e *Executor) endDelivery(ctx context.Context, l *delivery, err error) {
	f := l.message.Frame()
	why, giveUp := shouldQuarantine(err, e.countFailure(f.Run.RunID, err))
	switch {
	case err == nil, errors.Is(err, errReleased): // the release is in the queue
		e.logEndFailure(l.endWith(l.message.Ack), f.Run, "ack")
	case errors.Is(err, errCovered):
		e.deps.Metrics.Conflict()
		e.logEndFailure(l.endWith(l.message.Ack), f.Run, "ack")
	case errors.Is(err, errElsewhere): // it may be the owner's to end
		e.deps.Metrics.Conflict()
	case errors.Is(err, errLeaseLost): // another dispatcher may have it
	case ctx.Err() != nil:
		e.logEndFailure(l.endWith(l.message.Return), f.Run, "return")
	case giveUp:
		e.quarantineRun(ctx, l, why, err)
	case needsLaterEngine(err):
		e.logNeedsLaterEngine(f.Run.RunID, err)
		e.logEndFailure(l.endWith(l.message.Retry), f.Run, "retry")
	default:
		e.deps.Logger.Warn("run handed back", "run_id", f.Run.RunID, "error", err)
		e.logEndFailure(l.endWith(l.message.Retry), f.Run, "retry")
	}
}

// logEndFailure logs a delivery that could not be ended; the queue hands it out again.
func (e *Executor) logEndFailure(err error, r subject.Run, what string) {
	if err != nil {
		e.deps.Logger.Debug("delivery not ended", "run_id", r.RunID, "what", what, "error", err)
	}
}

// measureStart measures until begun is called, or called again, which changes nothing.
func (e *Executor) measureStart() (begun func()) {
	e.deps.FirstAppend.Enter(e.deps.Clock())
	return sync.OnceFunc(func() { e.deps.FirstAppend.Leave(e.deps.Clock()) })
}

// runSession runs one session from the log's state to where it can go no further. again says that an
// earlier session has run under the same delivery.
func (e *Executor) runSession(ctx context.Context, l *delivery, h *activeRun, begun func(), again bool) error {
	defer begun()
	h.claimed.Store(false)
	f := l.message.Frame()
	kept := l.keepExtended() // to read the log may take long
	defer kept()
	st, head, err := e.loadForDelivery(ctx, l.message, again)
	if errors.Is(err, cleartext.ErrGone) {
		return e.endWithoutCleartext(ctx, f.Run)
	}
	if err != nil {
		return err
	}
	ctx = guardReplay(ctx, st.Record)
	if st.Status.Terminal() {
		e.eraseEnded(ctx, f.Run, st)
		e.closeSecrets(ctx, st.Record) // whoever ended it may have been lost before it did
		return e.notifyRelatives(ctx, st)
	}
	if err := e.checkOwnership(ctx, f.Run, f.Pos, head.Ownership); err != nil {
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
	s := newSession(e, l, f.Run, head, m)
	s.active, s.logMoved, s.onFirstAppend = h, h.logMoved, begun
	defer func() {
		s.stopEffects()
		done(s.machine.State().Status)
	}()
	if s.spans, err = e.spans(ctx, f.Run, st.Record, head); err != nil {
		return err
	}
	if err := s.readChildren(ctx); err != nil {
		return err
	}
	kept() // from here on the session extends the delivery
	if err := s.runMachine(ctx); err != nil {
		return err
	}
	defer l.keepExtended()()
	return e.notifyRelatives(ctx, s.machine.State())
}

// openSecrets has the redactor know the run's own secrets while something is recorded of
// it here; done has them forgotten if the run has ended. They are registered each
// time, because the redactor may have lost its memory meanwhile.
func (e *Executor) openSecrets(ctx context.Context, r *wire.RunRecord) (done func(wire.Status), err error) {
	if r.CredentialRef == "" || e.deps.Secrets == nil {
		return func(wire.Status) {}, nil
	}
	if err := e.deps.Secrets.Open(ctx, r.Owner.Tenant, r.RunID, r.CredentialRef); err != nil {
		return nil, err
	}
	return func(status wire.Status) {
		if status.Terminal() {
			e.closeSecrets(ctx, r)
		}
	}, nil
}

// closeSecrets has the secrets of an ended run forgotten.
func (e *Executor) closeSecrets(ctx context.Context, r *wire.RunRecord) {
	if r.CredentialRef == "" || e.deps.Secrets == nil {
		return
	}
	if err := e.deps.Secrets.Close(context.WithoutCancel(ctx), r.Owner.Tenant, r.RunID); err != nil {
		e.deps.Logger.Warn("secrets of an ended run not forgotten", "run_id", r.RunID, "error", err)
	}
}

// loadForDelivery trusts a start frame that is handed out for the first time to be all
// there is; the first append proves it. Anything else is read from the log.
func (e *Executor) loadForDelivery(ctx context.Context, d runlog.Delivery, again bool) (*runstate.State, frame.Head, error) {
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
		load = e.loadWhole // it is too short for a snapshot
	}
	st, head, err := load(ctx, f.Run)
	if err == nil && head.Pos < f.Pos { // a server of a cluster may not have yet what another hands out
		return nil, frame.Head{}, fmt.Errorf("%w: it has the run up to %d only, and hands out %d", runlog.ErrUnavailable, head.Pos, f.Pos)
	}
	return st, head, err
}

func (e *Executor) loadPlan(ctx context.Context, st *runstate.State) (machine.Plan, error) {
	entry, err := e.deps.Definitions.ByDigest(ctx, st.Record.WorkflowDigest)
	if fault.CodeOf(err) == fault.WorkflowNotFound {
		err = errors.Join(errNoDefinition, err)
	}
	if err != nil {
		return machine.Plan{}, err
	}
	return machine.Plan{Def: entry.Def, Graph: entry.Graph, Flow: entry.Flow, Types: e.deps.Types, Gate: e.deps.Gate, Secrets: e.deps.NodeSecrets, Policy: e.deps.Policy, Capabilities: e.deps.Capabilities}, nil
}
