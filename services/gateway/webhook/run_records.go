package webhook

import (
	"context"
	"sync"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// runRecords reads the records of runs and caches the recently used ones. It is safe for
// concurrent use.
type runRecords struct {
	log runlog.Pager

	mu         sync.Mutex // guards the two below
	young, old map[subject.Run]*wire.RunRecord
}

// recordsKept is the size of each of the two cache generations.
const recordsKept = 2048

// newRunRecords makes a cache over a log.
func newRunRecords(log runlog.Pager) *runRecords {
	return &runRecords{log: log, young: map[subject.Run]*wire.RunRecord{}}
}

// Of returns the record of a run. Errors: runlog.ErrNotFound, runlog.ErrUnavailable, others
// if the record cannot be read.
func (r *runRecords) Of(ctx context.Context, run subject.Run) (*wire.RunRecord, error) {
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

// Note caches the record in a run's first frame.
func (r *runRecords) Note(first *frame.Frame) (*wire.RunRecord, error) {
	rec, err := first.Record()
	if err != nil {
		return nil, err
	}
	// Large members are not needed here.
	rec.Inputs, rec.Defaults, rec.Configurable, rec.Metadata = nil, nil, nil, nil
	run := first.Run
	run.WorkflowID = ""
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keep(run, rec)
	return rec, nil
}

func (r *runRecords) find(run subject.Run) *wire.RunRecord {
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

// keep caches a record. When the young generation is full it replaces the old one, which
// evicts records not used since. The caller holds mu.
func (r *runRecords) keep(run subject.Run, rec *wire.RunRecord) {
	if len(r.young) >= recordsKept {
		r.old, r.young = r.young, map[subject.Run]*wire.RunRecord{}
	}
	r.young[run] = rec
}
