package webhook

import (
	"context"
	"sync"

	"waybill.dev/waybill/internal/lru"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// runRecords reads the records of runs and caches the recently used ones. It is safe for
// concurrent use.
type runRecords struct {
	log runlog.Pager

	mu      sync.Mutex // guards records
	records *lru.Cache[subject.Run, *wire.RunRecord]
}

// recordsKept is the number of cached records.
const recordsKept = 4096

// newRunRecords makes a cache over a log.
func newRunRecords(log runlog.Pager) *runRecords {
	return &runRecords{log: log, records: lru.New[subject.Run, *wire.RunRecord](recordsKept)}
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
	r.records.Put(run, rec, 1)
	return rec, nil
}

func (r *runRecords) find(run subject.Run) *wire.RunRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec, _ := r.records.Get(run)
	return rec
}
