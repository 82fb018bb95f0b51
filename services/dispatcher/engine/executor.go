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
	"waybill.dev/waybill/services/dispatcher/machine"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/snapshot"
	"waybill.dev/waybill/services/dispatcher/vault"
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
	// MaxTogether bounds how many calls, or ends, of effects go into one frame. More than one leaves
	// the order of what they tell next to whoever comes first.
	MaxTogether int
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
	// Needed looks for the secrets that nodes need; nil: they are not looked for.
	Needed machine.Secrets
	// Policy looks for rules against models; nil: there are none.
	Policy machine.Policy
	// Vault keeps the clear values of masked runs; nil: there are no such runs.
	Vault Vault
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
	// Provides are the runtime capabilities of the host.
	Provides []string
	Clock    func() time.Time
	Logger   *slog.Logger
	// Spans takes the spans of runs; nil: they are not exported.
	Spans Spans
	// Metrics is told what is done here; nil: nobody counts.
	Metrics Metrics
	// Begins measures how long runs that were handed out take to their first append; nil: nobody does.
	Begins *queuetime.Meter
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
	active map[string]*held
	left   map[remark]bool
	// setbacks counts failures in a row that are the run's own; see setback.
	setbacks map[string]int
}

// held is a run that a session of this process executes.
type held struct {
	cancel context.CancelCauseFunc
	// pos is the position of the frame that handed the run out.
	pos uint64
	// claimed reports that the log has the claim of the session.
	claimed atomic.Bool
	// moved signals that others appended to the run's log; capacity 1.
	moved chan struct{}
	// joined are further deliveries of the run that came meanwhile; guarded by Executor.mu.
	joined []joined
}

// joined is a delivery that waits for the session of its run.
type joined struct {
	hold    *hold
	release func()
}

// notify has the session read the log.
func (h *held) notify() {
	select {
	case h.moved <- struct{}{}:
	default: // it will
	}
}

// New makes an executor.
func New(cfg Config, d Deps) *Executor {
	if d.Metrics == nil {
		d.Metrics = uncounted{}
	}
	if d.Backlog == nil {
		d.Backlog = func() bool { return false }
	}
	if d.Leases == nil {
		d.Leases = sole{rand.Text()}
	}
	if d.Snapshots == nil {
		d.Snapshots = snapshot.Without(d.Log)
	}
	return &Executor{
		cfg: cfg, deps: d, announcements: make(chan announcement, maxAnnouncements), active: map[string]*held{}, left: map[remark]bool{}, setbacks: map[string]int{},
		drain: drain{begun: make(chan struct{}), cut: make(chan struct{})},
	}
}

// Process is the id by which the log and the run list name this process.
func (x *Executor) Process() string { return x.deps.Leases.Process() }

func (x *Executor) newWriter() string { return x.writerOf(x.Process()) }

// writerOf is the name of another writer of a process.
func (x *Executor) writerOf(process string) string {
	return process + "-" + strconv.FormatUint(x.sessions.Add(1), 36)
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
func (x *Executor) Abort(runID string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if h := x.active[runID]; h != nil {
		h.cancel(errAborted)
	}
}

// tellMoved has the session of a run, if this process has one, read what others appended.
func (x *Executor) tellMoved(runID string) { x.Moved(runID, 0) }

// enter reserves a run for one session of this process. If it has one, the delivery joins it: the
// session reads the log, and whoever runs it takes the delivery up afterwards.
func (x *Executor) enter(l *hold) (h *held, ok bool) {
	f := l.delivery.Frame()
	runID := f.Run.RunID
	x.mu.Lock()
	defer x.mu.Unlock()
	if h := x.active[runID]; h != nil {
		h.joined = append(h.joined, joined{l, l.keep()})
		h.notify()
		return nil, false
	}
	h = &held{pos: f.Pos, cancel: func(error) {}, moved: make(chan struct{}, 1)}
	x.active[runID] = h
	return h, true
}

// leave ends the reservation and returns the deliveries that joined it.
func (x *Executor) leave(runID string, h *held) []joined {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.active, runID)
	return h.joined
}

// Execute takes a handed-out run as far as it goes, and ends the delivery.
func (x *Executor) Execute(ctx context.Context, d runlog.Delivery) {
	for l := newHold(x, d); l != nil; {
		l.process = runlog.ProcessOf(d) // also of deliveries that join it: what it holds counts for them
		l = x.turn(ctx, l)
	}
}

// turn executes the run of one delivery and ends it. next is another delivery of the same run that
// came meanwhile: what it was appended for may not have been seen.
func (x *Executor) turn(ctx context.Context, l *hold) (next *hold) {
	r := l.delivery.Frame().Run
	if x.draining() {
		x.end(l.end(l.delivery.Return), r, "return")
		return nil
	}
	h, ok := x.enter(l)
	if !ok {
		return nil
	}
	err := x.contain(r.RunID, func() error { return x.attempts(ctx, l, h) })
	kept := l.keep() // there may be logs to read
	switch {
	case errors.Is(err, errCancelling):
		err = x.contain(r.RunID, func() error { _, err := x.seeThrough(ctx, r); return err })
	case errors.Is(err, errOrphaned):
		err = x.contain(r.RunID, func() error { return x.cancelChild(ctx, r.Tenant, r.RunID) })
	}
	if errors.Is(err, lifecycle.ErrPanic) {
		err = x.endBroken(ctx, r, h.pos)
	}
	kept()
	for _, j := range x.leave(r.RunID, h) {
		j.release()
		pos := j.hold.delivery.Frame().Pos
		switch {
		case pos == l.delivery.Frame().Pos: // the same message, handed out again: it has one end
			l = j.hold
		case next != nil && pos != next.delivery.Frame().Pos:
			x.end(next.end(next.delivery.Ack), r, "ack")
			next = j.hold
		default:
			next = j.hold
		}
	}
	x.conclude(ctx, l, err)
	return next
}

// maxAttempts bounds how often a run is attempted in a row because its log moved on.
const maxAttempts = 8

// attempts runs sessions until one is not ended by a change of the log.
func (x *Executor) attempts(ctx context.Context, l *hold, h *held) (err error) {
	begun := x.beginning()
	for n := range maxAttempts {
		err = x.cancellable(ctx, h, func(ctx context.Context) error { return x.attempt(ctx, l, h, begun, n > 0) })
		if !errors.Is(err, errLost) || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// cancellable runs a session that Abort and LeaseLost can cancel.
func (x *Executor) cancellable(ctx context.Context, h *held, session func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	x.mu.Lock()
	h.cancel = cancel
	x.mu.Unlock()
	return session(ctx)
}

// conclude ends a delivery by what became of its run.
func (x *Executor) conclude(ctx context.Context, l *hold, err error) {
	f := l.delivery.Frame()
	why, giveUp := aside(err, x.setback(f.Run.RunID, err))
	switch {
	case err == nil, errors.Is(err, errReleased): // the release is in the queue
		x.end(l.end(l.delivery.Ack), f.Run, "ack")
	case errors.Is(err, errCovered):
		x.deps.Metrics.Conflict()
		x.end(l.end(l.delivery.Ack), f.Run, "ack")
	case errors.Is(err, errElsewhere): // it may be the owner's to end
		x.deps.Metrics.Conflict()
	case errors.Is(err, errLeaseLost): // another dispatcher may have it
	case ctx.Err() != nil:
		x.end(l.end(l.delivery.Return), f.Run, "return")
	case giveUp:
		x.setAside(ctx, l, why, err)
	case refused(err):
		x.leaveTo(f.Run.RunID, err)
		x.end(l.end(l.delivery.Retry), f.Run, "retry")
	default:
		x.deps.Logger.Warn("run handed back", "run_id", f.Run.RunID, "error", err)
		x.end(l.end(l.delivery.Retry), f.Run, "retry")
	}
}

// end logs a delivery that could not be ended; the queue hands it out again.
func (x *Executor) end(err error, r subject.Run, what string) {
	if err != nil {
		x.deps.Logger.Debug("delivery not ended", "run_id", r.RunID, "what", what, "error", err)
	}
}

// beginning measures until begun is called, or called again, which changes nothing.
func (x *Executor) beginning() (begun func()) {
	x.deps.Begins.Enter(x.deps.Clock())
	return sync.OnceFunc(func() { x.deps.Begins.Leave(x.deps.Clock()) })
}

// attempt runs one session from the log's state to where it can go no further. again says that an
// earlier session has run under the same delivery.
func (x *Executor) attempt(ctx context.Context, l *hold, h *held, begun func(), again bool) error {
	defer begun()
	h.claimed.Store(false)
	f := l.delivery.Frame()
	kept := l.keep() // to read the log may take long
	defer kept()
	st, head, err := x.stateOf(ctx, l.delivery, again)
	if errors.Is(err, vault.ErrGone) {
		return x.abandon(ctx, f.Run)
	}
	if err != nil {
		return err
	}
	ctx = sealed(ctx, st.Record)
	if st.Status.Terminal() {
		x.erase(ctx, f.Run, st)
		x.forget(ctx, st.Record) // whoever ended it may have been lost before it did
		return x.related(ctx, st)
	}
	if err := x.entitled(ctx, f.Run, f.Pos, head.Ownership); err != nil {
		return err
	}
	if err := x.cut(ctx, st); err != nil {
		return err
	}
	plan, err := x.plan(ctx, st)
	if err != nil {
		return err
	}
	done, err := x.secrets(ctx, st.Record)
	if err != nil {
		return err
	}
	if st, head, err = x.copyHistory(ctx, st, head); err != nil {
		return lost(err)
	}
	m, err := x.machine(ctx, plan, st)
	if err != nil {
		return err
	}
	s := newSession(x, l, f.Run, head, m)
	s.held, s.moved, s.begun = h, h.moved, begun
	defer func() {
		s.stop()
		done(s.m.State().Status)
	}()
	if s.spans, err = x.spans(ctx, f.Run, st.Record, head); err != nil {
		return err
	}
	if err := s.hearChildren(ctx); err != nil {
		return err
	}
	kept() // from here on the session extends the delivery
	if err := s.drive(ctx); err != nil {
		return err
	}
	defer l.keep()()
	return x.related(ctx, s.m.State())
}

// secrets has the redactor know the run's own secrets while something is recorded of
// it here; done has them forgotten if the run has ended. They are registered each
// time, because the redactor may have lost its memory meanwhile.
func (x *Executor) secrets(ctx context.Context, r *wire.RunRecord) (done func(wire.Status), err error) {
	if r.CredentialRef == "" || x.deps.Secrets == nil {
		return func(wire.Status) {}, nil
	}
	if err := x.deps.Secrets.Open(ctx, r.Owner.Tenant, r.RunID, r.CredentialRef); err != nil {
		return nil, err
	}
	return func(status wire.Status) {
		if status.Terminal() {
			x.forget(ctx, r)
		}
	}, nil
}

// forget has the secrets of an ended run forgotten.
func (x *Executor) forget(ctx context.Context, r *wire.RunRecord) {
	if r.CredentialRef == "" || x.deps.Secrets == nil {
		return
	}
	if err := x.deps.Secrets.Close(context.WithoutCancel(ctx), r.Owner.Tenant, r.RunID); err != nil {
		x.deps.Logger.Warn("secrets of an ended run not forgotten", "run_id", r.RunID, "error", err)
	}
}

// stateOf trusts a start frame that is handed out for the first time to be all
// there is; the first append proves it. Anything else is read from the log.
func (x *Executor) stateOf(ctx context.Context, d runlog.Delivery, again bool) (*runstate.State, frame.Head, error) {
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
	load := x.load
	if f.Kind == subject.Wake && !d.Redelivered() && f.First < snapshot.Every {
		load = x.loadWhole // it is too short for a snapshot
	}
	st, head, err := load(ctx, f.Run)
	if err == nil && head.Pos < f.Pos { // a server of a cluster may not have yet what another hands out
		return nil, frame.Head{}, fmt.Errorf("%w: it has the run up to %d only, and hands out %d", runlog.ErrUnavailable, head.Pos, f.Pos)
	}
	return st, head, err
}

func (x *Executor) plan(ctx context.Context, st *runstate.State) (machine.Plan, error) {
	e, err := x.deps.Definitions.ByDigest(ctx, st.Record.WorkflowDigest)
	if fault.CodeOf(err) == fault.WorkflowNotFound {
		err = errors.Join(errNoDefinition, err)
	}
	if err != nil {
		return machine.Plan{}, err
	}
	return machine.Plan{Def: e.Def, Graph: e.Graph, Flow: e.Flow, Types: x.deps.Types, Gate: x.deps.Gate, Secrets: x.deps.Needed, Policy: x.deps.Policy, Provides: x.deps.Provides}, nil
}
