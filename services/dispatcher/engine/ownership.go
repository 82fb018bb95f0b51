package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"waybill.dev/waybill/internal/retry"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/engine/snapshot"
)

// This file decides whether this process may execute a run. claim.go records the ownership of a
// session in the log, and package lease keeps the liveness of its process.

// Leases is the liveness of dispatcher processes; see package lease.
type Leases interface {
	// Process is the id of this process. It changes when its lease is lost.
	Process() string
	// Await returns once process may start effects. An error means that it never may again.
	Await(ctx context.Context, process string) error
	// Alive reports whether another process may still act. False is final.
	Alive(ctx context.Context, process string) (bool, error)
}

// Peers reaches the sessions of other processes.
type Peers interface {
	// NotifyAppended notifies a process that another one appended frames to a run; see
	// Executor.NotifyAppended. An error means that the process was unreachable.
	NotifyAppended(ctx context.Context, process, runID string, pos uint64) (PeerAnswer, error)
}

// PeerAnswer is the answer of another process about a run.
type PeerAnswer int

// The answers.
const (
	// NotExecuting: the process does not execute the run.
	NotExecuting PeerAnswer = iota
	// Executes: it executes the run and reads the log.
	Executes
	// Covers: it executes the run, and the caller may end its delivery of the frame.
	Covers
)

// soleProcess is the lease of the only process.
type soleProcess struct{ process string }

func newSoleProcess() soleProcess { return soleProcess{rand.Text()} }

func (s soleProcess) Process() string                           { return s.process }
func (soleProcess) Await(context.Context, string) error         { return nil }
func (soleProcess) Alive(context.Context, string) (bool, error) { return false, nil }

// errElsewhere: another live dispatcher owns the run and was notified of the delivery's frame.
var errElsewhere = errors.New("run is executed by another dispatcher")

// errCovered is errElsewhere for a frame that the owner handles: the delivery may be ended.
var errCovered = fmt.Errorf("%w, for another delivery", errElsewhere)

// errLeaseLost ends the sessions of a process whose lease was lost.
var errLeaseLost = errors.New("dispatcher lease lost")

// checkOwnership returns nil if this process may execute a run: no process owns it, this one does,
// or the owner's lease is over. pos is the position of the delivered frame. Errors: errElsewhere,
// errCovered, runlog.ErrUnavailable.
func (e *Executor) checkOwnership(ctx context.Context, r subject.Run, pos uint64, o frame.Ownership) error {
	if o.Owner == "" || o.Owner == e.deps.Leases.Process() {
		return nil
	}
	alive, err := e.isAlive(ctx, o.Owner)
	if err != nil {
		return err
	}
	if !alive {
		e.deps.Logger.Info("run taken over", "run_id", r.RunID, "from", o.Owner, "epoch", o.Epoch+1)
		return nil
	}
	if e.deps.Peers == nil {
		return errElsewhere
	}
	answer, err := e.deps.Peers.NotifyAppended(ctx, o.Owner, r.RunID, pos)
	switch {
	case err != nil:
		return fmt.Errorf("%w: reach dispatcher %s: %w", runlog.ErrUnavailable, o.Owner, err)
	case answer == Covers:
		return errCovered
	case answer == Executes:
		return errElsewhere
	default: // the owner gave the run up; if it claims it again at the same time, one of the two claims conflicts
		return nil
	}
}

// isAlive reports whether another process may still act. Errors: runlog.ErrUnavailable.
func (e *Executor) isAlive(ctx context.Context, process string) (bool, error) {
	alive, err := e.deps.Leases.Alive(ctx, process)
	if err != nil {
		return false, fmt.Errorf("%w: look up the lease of %s: %w", runlog.ErrUnavailable, process, err)
	}
	return alive, nil
}

// Ownership returns the owner of a run; the zero Ownership once it has ended. Errors:
// runlog.ErrNotFound, runlog.ErrUnavailable.
func (e *Executor) Ownership(ctx context.Context, r subject.Run) (frame.Ownership, error) {
	last, err := e.deps.Log.Last(ctx, r)
	if err != nil || last.Kind == subject.End {
		return frame.Ownership{}, err
	}
	f, err := e.deps.Snapshots.Read(ctx, last.Run, snapshot.Latest)
	return f.Head.Ownership, err
}

// NotifyAppended makes the session of a run, if this process has one, read the frames of other writers.
// Peers calls it. pos is the position of a frame that was delivered to the calling process.
//
// The caller may end its delivery on two conditions. The log has this session's claim, so the
// session knows the frame or finds it at its next append. And the session runs under the delivery
// of another frame: that one stays in the queue if this process dies, and is handed back if the
// session fails.
func (e *Executor) NotifyAppended(runID string, pos uint64) PeerAnswer {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.active[runID]
	if h == nil {
		return NotExecuting
	}
	h.notifyLogMoved()
	if h.claimed.Load() && h.handedOutAt != pos {
		return Covers
	}
	return Executes
}

// Retries of an announcement, and the pause between them. The owner's next append finds the change
// in any case.
const (
	announceTries = 5
	announcePause = 300 * time.Millisecond
	// maxAnnouncements limits the queued announcements.
	maxAnnouncements = 1024
)

// announcement is a change of a run that its owner should read.
type announcement struct{ runID, owner string }

// announce queues a notification for the owner of a changed run. It does not block.
func (e *Executor) announce(r subject.Run, o frame.Ownership) {
	if o.Owner == "" || e.deps.Peers == nil || o.Owner == e.deps.Leases.Process() {
		return
	}
	select {
	case e.announcements <- announcement{r.RunID, o.Owner}:
	default:
		e.deps.Logger.Warn("owner of a changed run not notified: too many announcements wait",
			"run_id", r.RunID, "owner", o.Owner)
	}
}

// Announce sends queued announcements until ctx ends.
func (e *Executor) Announce(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case a := <-e.announcements:
			wg.Go(func() { e.sendAnnouncement(ctx, a) })
		}
	}
}

func (e *Executor) sendAnnouncement(ctx context.Context, a announcement) {
	for range (retry.Policy{Base: announcePause, Attempts: announceTries}).Tries(ctx) {
		_, err := e.deps.Peers.NotifyAppended(ctx, a.owner, a.runID, 0)
		if err == nil {
			return
		}
		e.deps.Logger.Debug("owner of a changed run not reached", "run_id", a.runID, "owner", a.owner, "error", err)
	}
}

// awaitLease returns once a process may start effects. Errors: errLeaseLost, and the cause of ctx.
func (e *Executor) awaitLease(ctx context.Context, process string) error {
	err := e.deps.Leases.Await(ctx, process)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", errLeaseLost, err)
}

// LeaseLost stops every session of this process: another dispatcher may have its run. The sessions
// append nothing more, and their deliveries lapse.
func (e *Executor) LeaseLost() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.active {
		h.cancel(errLeaseLost)
	}
}

// Requeue enqueues a run of a dead process, for another dispatcher to take over. from is the
// process's claim. A run that has ended, is quarantined, or was taken over already, gets no frame: a
// quarantine outlives the run's owner. A run with a damaged log is quarantined.
func (e *Executor) Requeue(ctx context.Context, r subject.Run, from frame.Ownership) error {
	for range maxChangeTries {
		last, err := e.deps.Log.Last(ctx, r)
		switch {
		case errors.Is(err, runlog.ErrNotFound):
			return nil
		case errors.Is(err, frame.ErrDamaged):
			return e.quarantineDamaged(ctx, r, err)
		case err != nil:
			return err
		case last.Kind == subject.End:
			return nil
		}
		if now := from.After(last); now.Owner != from.Owner {
			return nil
		}
		if held, err := e.isQuarantined(ctx, last); err != nil || held {
			return err
		}
		f := frame.New(last.Run, subject.Wake, last.Head(), nil).By(e.newWriter())
		_, err = e.deps.Log.Append(ctx, f, last.Pos)
		if !errors.Is(err, runlog.ErrConflict) {
			if err == nil {
				e.deps.Metrics.Enqueued()
			}
			return err
		}
	}
	return runlog.ErrConflict
}
