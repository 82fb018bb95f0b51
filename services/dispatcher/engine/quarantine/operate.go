package quarantine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
)

// Record is a quarantined run as an operator sees it.
type Record struct {
	Run    subject.Run
	Reason string
	// Since is the time of the first quarantine; zero if an older release recorded it.
	Since time.Time
	// Next is the time of the next check, after Checks checks.
	Next   time.Time
	Checks int
	// Tries is the number of deliveries before the quarantine.
	Tries int
}

func (e entry) reason() string { return cmp.Or(e.Reason, ReasonDamaged) }

func (e entry) record() Record {
	r := Record{Run: e.run(), Reason: e.reason(), Next: time.UnixMilli(e.Next).UTC(), Checks: e.Checks, Tries: e.Tries}
	if e.Since > 0 {
		r.Since = time.UnixMilli(e.Since).UTC()
	}
	return r
}

// ForTenant lists a tenant's quarantined runs with ids after a given one, ordered by id. more
// reports that others follow. Errors: kv.ErrUnavailable.
func (l *List) ForTenant(ctx context.Context, tenant, after string, limit int) (records []Record, more bool, err error) {
	all, err := kv.List(ctx, l.store, prefix+tenant+".")
	if err != nil {
		return nil, false, fmt.Errorf("list quarantined runs: %w", err)
	}
	for _, there := range all {
		var e entry
		if json.Unmarshal(there.Value, &e) == nil && !e.Back && e.Tenant == tenant && e.RunID > after {
			records = append(records, e.record())
		}
	}
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.Run.RunID, b.Run.RunID) })
	if len(records) > limit {
		return records[:limit], true, nil
	}
	return records, false, nil
}

// Get finds a quarantined run. Errors: fault.NotQuarantined, kv.ErrUnavailable.
func (l *List) Get(ctx context.Context, tenant, runID string) (Record, error) {
	e, _, err := l.getEntry(ctx, tenant, runID)
	return e.record(), err
}

func (l *List) getEntry(ctx context.Context, tenant, runID string) (e entry, revision uint64, err error) {
	if !subject.Token(tenant) || !subject.Token(runID) {
		return e, 0, notQuarantined()
	}
	there, err := l.store.Get(ctx, keyOf(subject.Run{Tenant: tenant, RunID: runID}))
	switch {
	case errors.Is(err, kv.ErrNotFound), errors.Is(err, kv.ErrDamaged):
		return e, 0, notQuarantined()
	case err != nil:
		return e, 0, fmt.Errorf("read quarantine of run %s: %w", runID, err)
	}
	if json.Unmarshal(there.Value, &e) != nil || e.Back || e.Tenant != tenant {
		return e, 0, notQuarantined()
	}
	return e, there.Revision, nil
}

// Holds reports whether a run needs no wake: it is quarantined, and no check has enqueued it again or
// may have, or it waits in the queue because its dispatchers died. last is the position of the run's
// last frame, or 0 if its log is damaged. A run with a later frame than at its quarantine has left it:
// an answer or a control woke it. Errors: kv.ErrUnavailable.
func (l *List) Holds(ctx context.Context, r subject.Run, last uint64) (bool, error) {
	e, revision, err := l.readRecord(ctx, r)
	switch {
	case err != nil || revision == 0 || e.Tenant != r.Tenant:
		return false, err
	case e.Back:
		return e.NotBefore > l.clock().UnixMilli(), nil
	default:
		left := e.Pos > 0 && last > e.Pos
		return !e.Leaving && !left, nil
	}
}

func notQuarantined() *fault.Error {
	return fault.New(fault.NotQuarantined, "this run is not in quarantine")
}

// Retry checks a run and enqueues it now. back is false if it has ended. Errors:
// fault.NotQuarantined, fault.Conflict if the run still cannot continue, kv.ErrUnavailable, and
// those of the log.
func (l *List) Retry(ctx context.Context, tenant, runID string) (back bool, err error) {
	e, revision, err := l.getEntry(ctx, tenant, runID)
	if err != nil {
		return false, err
	}
	e.dropCounts() // the operator's retry begins the counts again
	if back, err = l.readmitRun(ctx, &e, revision); err != nil {
		if isRunsOwn(err) {
			return false, fault.New(fault.Conflict, "the run still cannot continue: %s", remedy(e.reason())).With("reason", e.reason()).Wrap(err)
		}
		return false, err
	}
	l.log.Info("run taken out of quarantine by an operator", "run_id", runID, "reason", e.reason(), "queued", back)
	return back, nil
}

// Release removes a run that was ended from the list.
func (l *List) Release(ctx context.Context, tenant, runID string) error {
	e, revision, err := l.getEntry(ctx, tenant, runID)
	if fault.CodeOf(err) == fault.NotQuarantined {
		return nil
	}
	if err != nil {
		return err
	}
	e.Back = true
	e.dropCounts()
	_, err = l.putEntry(ctx, e, revision)
	return err
}

// remedy is the recommended action for a reason.
func remedy(reason string) string {
	switch reason {
	case ReasonDamaged:
		return "its log is damaged; restore the log from a backup"
	case ReasonDefinition:
		return "its workflow definition is missing; restore the bucket waybill_workflows from a backup, or end the run"
	case ReasonEngine:
		return "it needs a newer engine; upgrade the dispatchers"
	case ReasonPanic:
		return "its execution panics; upgrade the dispatchers, or end the run"
	default:
		return "the dispatcher's log has the cause; end the run if it cannot be fixed"
	}
}
