package outbox

import (
	"context"
	"sync"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Records finds the records of runs, and remembers the latest. It is safe for
// concurrent use.
type Records struct {
	log runlog.Pager

	mu         sync.Mutex // guards the two below
	young, old map[subject.Run]*wire.RunRecord
}

// recordsKept is how many records each of the two generations holds.
const recordsKept = 2048

// NewRecords reads from a log.
func NewRecords(log runlog.Pager) *Records {
	return &Records{log: log, young: map[subject.Run]*wire.RunRecord{}}
}

// Of is the record of a run. Errors: runlog.ErrNotFound, runlog.ErrUnavailable, others
// for one that cannot be read.
func (r *Records) Of(ctx context.Context, run subject.Run) (*wire.RunRecord, error) {
	run.WorkflowID = "" // a run id names one run of a tenant
	if rec := r.find(run); rec != nil {
		return rec, nil
	}
	first, err := r.log.First(ctx, run)
	if err != nil {
		return nil, err
	}
	return r.Note(first)
}

// Note remembers the record in a run's first frame.
func (r *Records) Note(first *frame.Frame) (*wire.RunRecord, error) {
	rec, err := first.Record()
	if err != nil {
		return nil, err
	}
	// What may be large is of no use here.
	rec.Inputs, rec.Defaults, rec.Configurable, rec.Metadata = nil, nil, nil, nil
	run := first.Run
	run.WorkflowID = ""
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(run, rec)
	return rec, nil
}

func (r *Records) find(run subject.Run) *wire.RunRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	if rec := r.young[run]; rec != nil {
		return rec
	}
	rec := r.old[run]
	if rec != nil {
		r.keep(run, rec)
	}
	return rec
}

// keep forgets what was not asked for since the young generation was begun. The
// caller holds mu.
func (r *Records) keep(run subject.Run, rec *wire.RunRecord) {
	if len(r.young) >= recordsKept {
		r.old, r.young = r.young, map[subject.Run]*wire.RunRecord{}
	}
	r.young[run] = rec
}
