package quarantine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/subject"
)

// This file counts, for all dispatchers together, failed deliveries of runs that are not quarantined,
// and dispatchers that died with them. The counts are members of the record, which then has Back set.
// A restart, a takeover, or a new frame in the queue therefore does not restart a count. A run that
// never failed has no record.

const (
	// MaxDeaths is the number of dispatchers that may die with a run in a row, without progress of the
	// run in between, before it is quarantined.
	MaxDeaths = 12
	// deathsWithoutPause is the number of deaths after which a run is executed again immediately. It
	// covers restarts and deploys that go wrong.
	deathsWithoutPause = 3
	// firstPause follows the next death. It doubles with each further one.
	firstPause = 2 * time.Second
	// keepCounts is how long counts are kept after their last change.
	keepCounts = time.Hour
	// maxListed limits the listed processes of a run that is quarantined again and again.
	maxListed = 4 * MaxDeaths
)

// Deaths are the dispatchers that died with a run, without progress in between.
type Deaths struct {
	Count int
	// NotBefore is the earliest time of the next execution; zero means now.
	NotBefore time.Time
	// Quarantined: the run was quarantined after it was enqueued for this delivery.
	Quarantined bool
}

// isQuarantinedAfter reports that a run was quarantined after the frame at pos, which may still be in the queue.
func (e entry) isQuarantinedAfter(pos uint64) bool { return !e.Back && !e.Leaving && pos <= e.Pos }

func (e entry) deaths() Deaths {
	d := Deaths{Count: len(e.Dead) - e.Pardoned}
	if e.NotBefore > 0 {
		d.NotBefore = time.UnixMilli(e.NotBefore)
	}
	return d
}

// CountFailure counts a failed delivery of a run, and returns the number of consecutive ones. Errors:
// kv.ErrUnavailable, kv.ErrConflict.
func (l *List) CountFailure(ctx context.Context, r subject.Run) (failures int, err error) {
	e, err := l.change(ctx, r, func(e *entry) bool {
		e.Failures++
		e.Executing = ""
		return true
	})
	return e.Failures, err
}

// Enter records that a process is about to execute a run that was delivered before, unless the run
// has to wait. pos is the position of the delivered frame. If the process dies, the next Enter counts
// its death. isOver reports whether another process has died. Errors: kv.ErrUnavailable, kv.ErrConflict, and those of isOver.
func (l *List) Enter(
	ctx context.Context, r subject.Run, pos uint64, process string, isOver func(process string) (bool, error),
) (Deaths, error) {
	var failed error
	e, err := l.change(ctx, r, func(e *entry) bool {
		if e.isQuarantinedAfter(pos) {
			return false
		}
		if e.Executing != "" && e.Executing != process {
			var over bool
			if over, failed = isOver(e.Executing); !over {
				return false
			}
			l.addDeath(e, e.Executing)
		}
		if e.deaths().Count < MaxDeaths && e.NotBefore <= l.clock().UnixMilli() {
			e.Executing = process
		}
		return true
	})
	d := e.deaths()
	d.Quarantined = e.isQuarantinedAfter(pos)
	return d, errors.Join(err, failed)
}

// CountDeath counts a process that died while it owned a run, once for each process. pos is the
// position of the delivered frame. progress is a number that grows when the run continues: deaths before that no longer count. Errors:
// kv.ErrUnavailable, kv.ErrConflict.
func (l *List) CountDeath(ctx context.Context, r subject.Run, pos uint64, process string, progress int) (Deaths, error) {
	e, err := l.change(ctx, r, func(e *entry) bool {
		if e.isQuarantinedAfter(pos) {
			return false
		}
		if progress > e.Progress {
			e.Progress, e.Failures, e.NotBefore = progress, 0, 0
			e.Dead, e.Pardoned = slices.DeleteFunc(e.Dead, func(p string) bool { return p != process }), 0
		}
		if slices.Contains(e.Dead, process) {
			return false
		}
		l.addDeath(e, process)
		return true
	})
	d := e.deaths()
	d.Quarantined = e.isQuarantinedAfter(pos)
	return d, err
}

// addDeath counts a death, and sets the pause until the next execution. Other runs of the dead process
// get pauses of other lengths. So they are executed without the run that ends its process.
func (l *List) addDeath(e *entry, process string) {
	if e.Executing == process {
		e.Executing = ""
	}
	if slices.Contains(e.Dead, process) || e.deaths().Count >= MaxDeaths {
		return
	}
	e.Dead = append(e.Dead, process)
	if len(e.Dead) > maxListed {
		e.Dead, e.Pardoned = e.Dead[1:], e.Pardoned-1
	}
	n := e.deaths().Count - deathsWithoutPause - 1
	if n < 0 {
		return
	}
	pause := firstPause << n
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, e.RunID, " ", n)
	pause = pause/2 + pause*time.Duration(h.Sum32()%256)/256
	e.NotBefore = l.clock().Add(pause).UnixMilli()
}

// Leave records that a process has ended the execution of a run without a result. Errors:
// kv.ErrUnavailable, kv.ErrConflict.
func (l *List) Leave(ctx context.Context, r subject.Run, process string) error {
	_, err := l.change(ctx, r, func(e *entry) bool {
		was := e.Executing
		if was == process {
			e.Executing = ""
		}
		return was == process
	})
	return err
}

// Forget drops the counts of a run that continues. Errors: kv.ErrUnavailable, kv.ErrConflict.
func (l *List) Forget(ctx context.Context, r subject.Run) error {
	_, err := l.change(ctx, r, func(e *entry) bool {
		counted := e.Failures > 0 || len(e.Dead) > 0 || e.Executing != ""
		e.dropCounts()
		return counted
	})
	return err
}

// dropCounts sets all counts to zero.
func (e *entry) dropCounts() {
	e.Failures, e.Dead, e.Pardoned, e.Executing, e.NotBefore, e.Progress = 0, nil, 0, "", 0, 0
}

// allowOne leaves one attempt: the next failure or death quarantines the run again.
func (e *entry) allowOne() {
	e.Executing, e.NotBefore = "", 0
	e.Pardoned = max(e.Pardoned, len(e.Dead)-(MaxDeaths-1))
	e.Failures = max(e.Tries-1, 0)
}

// change applies a change to the record of a run, and creates one if necessary. A record without
// counts, of a run that was never quarantined, is deleted.
func (l *List) change(ctx context.Context, r subject.Run, do func(e *entry) (changed bool)) (entry, error) {
	for range addTries {
		e, revision, err := l.readRecord(ctx, r)
		if err != nil {
			return entry{}, err
		}
		if !do(&e) {
			return e, nil
		}
		e.Keep = l.clock().Add(keepCounts).UnixMilli()
		if e.Since == 0 && e.Failures == 0 && len(e.Dead) == 0 && e.Executing == "" {
			err = l.deleteRecord(ctx, r, revision)
		} else {
			_, err = l.putEntry(ctx, e, revision)
		}
		if !errors.Is(err, kv.ErrConflict) {
			return e, err
		}
	}
	return entry{}, fmt.Errorf("count deliveries of run %s: %w", r.RunID, kv.ErrConflict)
}

func (l *List) deleteRecord(ctx context.Context, r subject.Run, revision uint64) error {
	if revision == 0 {
		return nil
	}
	return l.store.Delete(ctx, keyOf(r), revision)
}

// readRecord returns the record of a run, or a new one at revision 0. A damaged or unreadable record
// is replaced.
func (l *List) readRecord(ctx context.Context, r subject.Run) (e entry, revision uint64, err error) {
	there, err := l.store.Get(ctx, keyOf(r))
	switch {
	case err == nil, errors.Is(err, kv.ErrDamaged):
		revision = there.Revision
	case !errors.Is(err, kv.ErrNotFound):
		return e, 0, fmt.Errorf("read the quarantine record of run %s: %w", r.RunID, err)
	}
	if json.Unmarshal(there.Value, &e) != nil {
		e = entry{Back: true, Tenant: r.Tenant, WorkflowID: r.WorkflowID, RunID: r.RunID}
	}
	return e, revision, nil
}
