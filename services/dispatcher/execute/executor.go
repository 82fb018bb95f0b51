// Package execute carries runs out: it folds a run from its log, lets the pure
// machine say what comes next, appends that, and performs the effects.
//
// Each run has one writer, the goroutine of its session. Effects run beside it
// and append through it. A session that finds the log moved on by somebody else
// has lost its run, drops what it was doing, and looks again.
package execute

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
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/sojourn"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/run"
	"waybill.dev/waybill/services/dispatcher/vault"
)

// Config bounds execution.
type Config struct {
	Limits run.Limits
	// Heartbeat is how often a held run is extended: a third of the queue's
	// patience, so that one lost heartbeat does no harm.
	Heartbeat time.Duration
	// MaxTogether bounds how many calls, or ends, of effects go into one frame. More than one leaves
	// the order of what they tell next to whoever comes first.
	MaxTogether int
}

// Heartbeats is how many of them a lease is long.
const Heartbeats = 3

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
	Gate run.Gate
	// Needed looks for the secrets that nodes need; nil: they are not looked for.
	Needed run.Secrets
	// Policy looks for rules against models; nil: there are none.
	Policy run.Policy
	// Vault keeps the clear values of masked runs; nil: there are no such runs.
	Vault Vault
	// Quarantine remembers runs whose log is damaged; nil: they do not come back.
	Quarantine Quarantine
	// Provides are the runtime capabilities of the host.
	Provides []string
	Clock    func() time.Time
	Logger   *slog.Logger
	// Spans takes the spans of runs; nil: they are not exported.
	Spans Spans
	// Metrics is told what is done here; nil: nobody counts.
	Metrics Metrics
	// Begins measures how long runs that were handed out take to their first append; nil: nobody does.
	Begins *sojourn.Meter
	// Wait is told when a run sleeps until an instant and holds no executor.
	Wait func(run subject.Run, head frame.Head, due time.Time)
	// Forget is told when a run that may sleep will not wake.
	Forget func(tenant, runID string)
}

// Executor carries out runs. It is safe for concurrent use.
type Executor struct {
	cfg  Config
	deps Deps

	// process and sessions make up writer names, unique over all processes.
	process  string
	sessions atomic.Uint64

	mu     sync.Mutex // guards active and left
	active map[string]*held
	left   map[remark]bool
}

// held is a run that a session of this process carries out.
type held struct {
	cancel context.CancelCauseFunc
	// moved is told that somebody else wrote to the run's log; capacity 1.
	moved chan struct{}
}

// New makes an executor.
func New(cfg Config, d Deps) *Executor {
	if d.Metrics == nil {
		d.Metrics = uncounted{}
	}
	return &Executor{cfg: cfg, deps: d, process: rand.Text(), active: map[string]*held{}, left: map[remark]bool{}}
}

// Process is the id by which the log and the run list name this process.
func (x *Executor) Process() string { return x.process }

func (x *Executor) newWriter() string {
	return x.process + "-" + strconv.FormatUint(x.sessions.Add(1), 36)
}

var (
	// errLost says that somebody else wrote to the run: it was cancelled, or
	// another dispatcher has it.
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

// tellMoved has the session of a run, if this process has one, read what somebody else
// wrote, and go on.
func (x *Executor) tellMoved(runID string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if h := x.active[runID]; h != nil {
		select {
		case h.moved <- struct{}{}:
		default:
		}
	}
}

// claim reserves a run for one session of this process.
func (x *Executor) claim(ctx context.Context, runID string) (context.Context, *held, func(), bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.active[runID] != nil {
		return nil, nil, nil, false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	h := &held{cancel: cancel, moved: make(chan struct{}, 1)}
	x.active[runID] = h
	return ctx, h, func() {
		x.mu.Lock()
		delete(x.active, runID)
		x.mu.Unlock()
		cancel(nil)
	}, true
}

// Execute takes a handed-out run as far as it goes, and ends the delivery.
func (x *Executor) Execute(ctx context.Context, d runlog.Delivery) {
	f, l := d.Frame(), newLease(x, d)
	sctx, h, release, ok := x.claim(ctx, f.Run.RunID)
	if !ok { // its session goes on; look again when it is through
		x.deps.Metrics.Conflict()
		x.end(l.retry(), f, "retry")
		return
	}
	err := x.contain(f.Run.RunID, func() error { return x.turn(ctx, sctx, h, l) })
	if errors.Is(err, lifecycle.ErrPanic) {
		kept := l.keep()
		err = x.endBroken(ctx, f.Run)
		kept()
	}
	release()
	why, giveUp := aside(err, d.Tries())
	switch {
	case err == nil:
		x.end(l.ack(), f, "ack")
	case giveUp && ctx.Err() == nil:
		x.setAside(ctx, l, why, err)
	case refused(err):
		x.leave(f.Run.RunID, err)
		x.end(l.retry(), f, "retry")
	default:
		if ctx.Err() == nil {
			x.deps.Logger.Warn("run handed back", "run_id", f.Run.RunID, "error", err)
		}
		x.end(l.retry(), f, "retry")
	}
}

// turn takes a run as far as it goes, and does what its end or its loss asks for.
func (x *Executor) turn(ctx, sctx context.Context, h *held, l *lease) error {
	err := x.attempt(sctx, l, h.moved, x.beginning())
	defer l.keep()() // there may be logs to read
	r := l.delivery.Frame().Run
	switch {
	case errors.Is(err, errCancelling):
		_, err = x.seeThrough(ctx, r)
	case errors.Is(err, errOrphaned):
		err = x.cancelChild(ctx, r.Tenant, r.RunID)
	case errors.Is(err, errLost) && ctx.Err() == nil:
		err = x.lookAgain(ctx, l.delivery)
	}
	return err
}

// end logs a delivery that could not be ended; the queue hands it out again.
func (x *Executor) end(err error, f *frame.Frame, what string) {
	if err != nil {
		x.deps.Logger.Debug("delivery not ended", "run_id", f.Run.RunID, "what", what, "error", err)
	}
}

// lookAgain decides what a lost run needs: nothing if it has ended, another
// turn otherwise.
func (x *Executor) lookAgain(ctx context.Context, d runlog.Delivery) error {
	st, _, err := x.load(ctx, d.Frame().Run)
	if err != nil {
		return err
	}
	if st.Status.Terminal() {
		x.forget(ctx, st.Record)
		return x.related(ctx, st)
	}
	return errLost
}

// beginning measures until begun is called, or called again, which changes nothing.
func (x *Executor) beginning() (begun func()) {
	x.deps.Begins.Enter(x.deps.Clock())
	return sync.OnceFunc(func() { x.deps.Begins.Leave(x.deps.Clock()) })
}

// attempt runs one session from the log's state to where it can go no further.
func (x *Executor) attempt(ctx context.Context, l *lease, moved <-chan struct{}, begun func()) error {
	defer begun()
	f := l.delivery.Frame()
	kept := l.keep() // to read the log may take longer than the lease
	defer kept()
	st, head, err := x.stateOf(ctx, l.delivery)
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
	s.moved, s.begun = moved, begun
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
	kept() // from here on the writer itself gives signs of life
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
func (x *Executor) stateOf(ctx context.Context, d runlog.Delivery) (*runstate.State, frame.Head, error) {
	f := d.Frame()
	if f.Kind == subject.Start && !d.Redelivered() {
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
	st, head, err := x.load(ctx, f.Run)
	if err == nil && head.Pos < f.Pos { // a server of a cluster may not have yet what another hands out
		return nil, frame.Head{}, fmt.Errorf("%w: it has the run up to %d only, and hands out %d", runlog.ErrUnavailable, head.Pos, f.Pos)
	}
	return st, head, err
}

func (x *Executor) plan(ctx context.Context, st *runstate.State) (run.Plan, error) {
	e, err := x.deps.Definitions.ByDigest(ctx, st.Record.WorkflowDigest)
	if fault.CodeOf(err) == fault.WorkflowNotFound {
		err = errors.Join(errNoDefinition, err)
	}
	if err != nil {
		return run.Plan{}, err
	}
	return run.Plan{Def: e.Def, Graph: e.Graph, Flow: e.Flow, Types: x.deps.Types, Gate: x.deps.Gate, Secrets: x.deps.Needed, Policy: x.deps.Policy, Provides: x.deps.Provides}, nil
}
