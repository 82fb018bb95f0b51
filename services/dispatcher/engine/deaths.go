package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/runstate"
	"waybill.dev/waybill/services/dispatcher/engine/quarantine"
)

// A run can end the process that executes it, for example through a stack overflow or its memory use.
// The deaths of such processes are counted in the run's quarantine record, because the next process
// has no record of them:
//
//   - A process that died after its claim is the owner in the log. The next one counts it.
//   - A process that died before its claim left its delivery unended. Every execution of a run that was
//     delivered before is recorded first, so that the next delivery finds it.
//
// Other runs of the process die with it. Growing pauses of different lengths separate them from the
// run that is the cause: they continue, and their counts end.

// errPaused: the run waits until its next execution, because its dispatchers died.
var errPaused = errors.New("run waits: its dispatchers died")

// errQuarantined: the run was quarantined, through another delivery, after it was enqueued for this one.
var errQuarantined = errors.New("run was quarantined through another delivery")

// deathsError quarantines a run because too many of its dispatchers died.
type deathsError struct{ count int }

func (e deathsError) Error() string {
	return fmt.Sprintf("%d dispatchers in a row died while they executed the run", e.count)
}

// enterDelivered records the execution of a run that was delivered before. Errors: errPaused,
// errQuarantined, deathsError, and those of the quarantine.
func (e *Executor) enterDelivered(ctx context.Context, d *delivery) error {
	if e.deps.Quarantine == nil || d.message.Tries() <= 1 {
		return nil
	}
	d.recorded = e.deps.Leases.Process()
	f := d.message.Frame()
	deaths, err := e.deps.Quarantine.Enter(ctx, f.Run, f.Pos, d.recorded, func(process string) (bool, error) {
		alive, err := e.isAlive(ctx, process)
		return !alive, err
	})
	if err != nil {
		return err
	}
	return e.checkDeaths(d, deaths)
}

// countDeath counts the owner of a run if it died. Call it with the ownership that checkOwnership
// allowed. Errors: as enterDelivered.
func (e *Executor) countDeath(ctx context.Context, d *delivery, st *runstate.State, o frame.Ownership) error {
	if e.deps.Quarantine == nil || o.Owner == "" || o.Owner == e.deps.Leases.Process() {
		return nil
	}
	if alive, err := e.isAlive(ctx, o.Owner); err != nil || alive { // it gave the run up
		return err
	}
	d.recorded = e.deps.Leases.Process()
	f := d.message.Frame()
	deaths, err := e.deps.Quarantine.CountDeath(ctx, f.Run, f.Pos, o.Owner, progressOf(st))
	if err != nil {
		return err
	}
	return e.checkDeaths(d, deaths)
}

// progressOf grows with each attempt that a result follows, and with each model call. Attempts that
// lost their dispatcher do not count.
func progressOf(st *runstate.State) int { return st.Executions + st.Cost.Calls }

func (e *Executor) checkDeaths(d *delivery, deaths quarantine.Deaths) error {
	switch {
	case deaths.Quarantined:
		return errQuarantined
	case deaths.Count >= quarantine.MaxDeaths:
		return deathsError{deaths.Count}
	case deaths.NotBefore.After(e.deps.Clock()):
		e.deps.Logger.Info("run waits: its dispatchers died", "run_id", d.message.Frame().Run.RunID,
			"deaths", deaths.Count, "until", deaths.NotBefore.UTC().Format(time.RFC3339))
		return errPaused
	default:
		return nil
	}
}

// isOwnFailure reports a failed delivery that the run caused.
func isOwnFailure(err error) bool {
	return err != nil && !isTransient(err) && !errors.Is(err, runlog.ErrErased) && !errors.Is(err, errReleased) && !errors.Is(err, errElsewhere)
}

// settleTimeout limits the write of counts. A process that stops writes them, too: otherwise its end
// would count as a death.
const settleTimeout = 3 * time.Second

// settleHistory updates the counts of a run after a delivery, and returns the number of consecutive
// failures that the run caused. A run without counts needs no access to the store.
func (e *Executor) settleHistory(ctx context.Context, d *delivery, err error) (failures int) {
	var (
		q      = e.deps.Quarantine
		r      = d.message.Frame().Run
		failed error
	)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	switch {
	case q == nil:
		return 0
	case err == nil && d.recorded != "":
		failed = q.Forget(ctx, r)
	case isOwnFailure(err):
		release := d.keepExtended()
		failures, failed = q.CountFailure(ctx, r)
		release()
	case d.recorded != "":
		failed = q.Leave(ctx, r, d.recorded)
	}
	if failed != nil {
		e.deps.Logger.Debug("deliveries of a run not counted", "run_id", r.RunID, "error", failed)
	}
	return failures
}
