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
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/run"
)

// Config bounds execution.
type Config struct {
	Limits run.Limits
	// Heartbeat is how often a held run is extended: a third of the queue's
	// patience, so that one lost heartbeat does no harm.
	Heartbeat time.Duration
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
	Types       node.Catalog
	// Gate decides about models; nil: what nodes require of them is opaque.
	Gate run.Gate
	// Needed looks for the secrets that nodes need; nil: they are not looked for.
	Needed run.Secrets
	Clock  func() time.Time
	Logger *slog.Logger
	// Spans takes the spans of runs; nil: they are not exported.
	Spans Spans
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

	mu     sync.Mutex // guards active
	active map[string]context.CancelCauseFunc
}

// New makes an executor.
func New(cfg Config, d Deps) *Executor {
	return &Executor{cfg: cfg, deps: d, process: rand.Text(), active: map[string]context.CancelCauseFunc{}}
}

func (x *Executor) newWriter() string {
	return x.process + "-" + strconv.FormatUint(x.sessions.Add(1), 36)
}

var (
	// errLost says that somebody else wrote to the run: it was cancelled, or
	// another dispatcher has it.
	errLost = errors.New("run was taken over")
	// errAborted is the cause of a session that was asked to look again at once.
	errAborted = errors.New("run was changed by a request")
)

// Abort makes the session of a run, if this process has one, drop its effects
// and look at the log again. Called after a cancel was appended.
func (x *Executor) Abort(runID string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if cancel := x.active[runID]; cancel != nil {
		cancel(errAborted)
	}
}

// claim reserves a run for one session of this process.
func (x *Executor) claim(ctx context.Context, runID string) (context.Context, func(), bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.active[runID] != nil {
		return nil, nil, false
	}
	ctx, cancel := context.WithCancelCause(ctx)
	x.active[runID] = cancel
	return ctx, func() {
		x.mu.Lock()
		delete(x.active, runID)
		x.mu.Unlock()
		cancel(nil)
	}, true
}

// Execute takes a handed-out run as far as it goes, and ends the delivery.
func (x *Executor) Execute(ctx context.Context, d runlog.Delivery) {
	f := d.Frame()
	sctx, release, ok := x.claim(ctx, f.Run.RunID)
	if !ok { // its session goes on; look again when it is through
		x.end(d.Retry(), f, "retry")
		return
	}
	err := x.attempt(sctx, d)
	if errors.Is(err, errLost) && ctx.Err() == nil {
		err = x.lookAgain(ctx, d)
	}
	release()
	switch {
	case err == nil:
		x.end(d.Ack(), f, "ack")
	case errors.Is(err, frame.ErrDamaged), errors.Is(err, runlog.ErrNotFound):
		// Handing it out again would not mend it; the other runs go on.
		x.deps.Logger.Error("run quarantined: its log is damaged", "run_id", f.Run.RunID, "error", err)
		x.end(d.Ack(), f, "ack")
	default:
		if ctx.Err() == nil {
			x.deps.Logger.Warn("run handed back", "run_id", f.Run.RunID, "error", err)
		}
		x.end(d.Retry(), f, "retry")
	}
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
		return nil
	}
	return errLost
}

// attempt runs one session from the log's state to where it can go no further.
func (x *Executor) attempt(ctx context.Context, d runlog.Delivery) error {
	f := d.Frame()
	st, head, err := x.stateOf(ctx, d)
	if err != nil {
		return err
	}
	if st.Status.Terminal() {
		x.forget(ctx, st.Record) // whoever ended it may have been lost before it did
		return nil
	}
	plan, err := x.plan(ctx, st)
	if err != nil {
		return err
	}
	done, err := x.secrets(ctx, st.Record)
	if err != nil {
		return err
	}
	s := newSession(x, d, f.Run, head, run.New(plan, x.cfg.Limits, st))
	defer func() {
		s.stop()
		done(s.m.State().Status)
	}()
	if s.spans, err = x.spans(ctx, f.Run, st.Record, head); err != nil {
		return err
	}
	return s.drive(ctx)
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
		return runstate.New(rec), f.Head(), nil
	}
	return x.load(ctx, f.Run)
}

func (x *Executor) load(ctx context.Context, r subject.Run) (*runstate.State, frame.Head, error) {
	frames, err := x.deps.Log.Run(ctx, r)
	if err != nil {
		return nil, frame.Head{}, err
	}
	return run.Load(frames)
}

func (x *Executor) plan(ctx context.Context, st *runstate.State) (run.Plan, error) {
	e, err := x.deps.Definitions.ByDigest(ctx, st.Record.WorkflowDigest)
	if err != nil {
		return run.Plan{}, err
	}
	return run.Plan{Def: e.Def, Graph: e.Graph, Types: x.deps.Types, Gate: x.deps.Gate, Secrets: x.deps.Needed}, nil
}

// maxCancelTries bounds how often a cancel races with the run's own appends.
const maxCancelTries = 32

// Cancel ends a run wherever it is executed. already reports that it had ended.
func (x *Executor) Cancel(ctx context.Context, tenant, runID, reason, by string) (st *runstate.State, already bool, err error) {
	for range maxCancelTries {
		st, head, err := x.load(ctx, subject.Run{Tenant: tenant, RunID: runID})
		if errors.Is(err, runlog.ErrNotFound) {
			return nil, false, fault.New(fault.RunNotFound, "no run of this id in your tenant")
		}
		if err != nil {
			return nil, false, err
		}
		if st.Status.Terminal() {
			x.forget(ctx, st.Record) // an earlier round may have registered them, after whoever ended it had them forgotten
			return st, true, nil
		}
		if st.Record.Opened {
			return nil, false, fault.New(fault.Conflict, "the run is carried out outside this host: whoever opened it has to close it")
		}
		plan, err := x.plan(ctx, st)
		if err != nil {
			return nil, false, err
		}
		done, err := x.secrets(ctx, st.Record)
		if err != nil {
			return nil, false, err
		}
		m := run.New(plan, x.cfg.Limits, st)
		m.Begin(x.deps.Clock())
		m.Cancel(x.deps.Clock(), reason, by)
		r := subject.Run{Tenant: tenant, WorkflowID: st.Record.WorkflowID, RunID: runID}
		told, err := x.spans(ctx, r, st.Record, head)
		if err != nil {
			return nil, false, err
		}
		a, err := x.append(ctx, x.newWriter(), r, head, m)
		told.saw(a.events)
		if errors.Is(err, runlog.ErrConflict) {
			continue // the run moved on; look again
		}
		if err != nil {
			return nil, false, err
		}
		x.Abort(runID)
		done(m.State().Status)
		x.deps.Forget(tenant, runID)
		return m.State(), false, nil
	}
	return nil, false, fault.New(fault.Conflict, "the run is moving too fast to be cancelled; try again")
}
