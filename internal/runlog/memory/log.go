// Package memory is a run log in memory for tests. It implements every port of runlog with the
// rules of the durable log (one order, compare-and-set per run, retries recognized by hash,
// redelivery of unacknowledged runs), and supports fault injection.
package memory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// Log is the run log. It is safe for concurrent use. Returned frames share their bodies with it: do
// not change them.
type Log struct {
	mu        sync.Mutex       // guards the fields below
	frames    []*frame.Frame   // nil: purged
	runs      map[runKey][]int // indexes into frames, in order
	ready     []*item          // runs to deliver, oldest first
	held      map[uint64]*item // delivered and not ended, by position
	handed    uint64           // number of deliveries
	delivered uint64           // position of the last delivered frame
	changed   chan struct{}    // closed and replaced whenever a field above grows
	delay     time.Duration
	faults    faults
	// carriedOut are the positions of handled erasures.
	carriedOut []uint64
}

// runKey omits the workflow: a run id identifies one run of a tenant.
type runKey struct{ tenant, runID string }

func keyOf(r subject.Run) runKey { return runKey{tenant: r.Tenant, runID: r.RunID} }

// New returns an empty log whose Retry redelivers immediately.
func New() *Log {
	return &Log{runs: map[runKey][]int{}, held: map[uint64]*item{}, changed: make(chan struct{})}
}

// wake notifies all waiters that the log has changed. The caller holds mu.
func (l *Log) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// Append stores a copy of f; see runlog.Appender.
func (l *Log) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("%w: append to run %s: %w", runlog.ErrUnavailable, f.Run.RunID, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.faults.takeAppend(); err != nil {
		return 0, err
	}
	chain := l.runs[keyOf(f.Run)]
	if l.lastPos(chain) != after {
		return l.settle(f, chain, after)
	}
	pos := l.store(f)
	return pos, l.faults.takeAck()
}

// settle resolves a failed expectation: an earlier attempt of the same frame, or another frame.
func (l *Log) settle(f *frame.Frame, chain []int, after uint64) (uint64, error) {
	for _, i := range chain {
		if g := l.frames[i]; g.Pos > after {
			if g.Hash == f.Hash {
				return g.Pos, nil
			}
			break
		}
	}
	err := fmt.Errorf("%w: run %s after position %d", runlog.ErrConflict, f.Run.RunID, after)
	if n := len(chain); n > 0 && l.frames[chain[n-1]].Kind == subject.Seal {
		err = errors.Join(err, sealed(f.Run))
	}
	return 0, err
}

func (l *Log) store(f *frame.Frame) uint64 {
	c := *f
	c.Body, c.Types = slices.Clone(f.Body), slices.Clone(f.Types)
	c.Pos, c.Stored = uint64(len(l.frames))+1, time.Now()
	key := keyOf(f.Run)
	l.runs[key] = append(l.runs[key], len(l.frames))
	l.frames = append(l.frames, &c)
	if c.Kind == subject.Start || c.Kind == subject.Wake {
		l.ready = append(l.ready, &item{frame: &c})
	}
	l.wake()
	return c.Pos
}

func (l *Log) lastPos(chain []int) uint64 {
	if len(chain) == 0 {
		return 0
	}
	return l.frames[chain[len(chain)-1]].Pos
}

// Run returns all frames of a run; see runlog.Reader.
func (l *Log) Run(ctx context.Context, run subject.Run) ([]*frame.Frame, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readable(ctx); err != nil {
		return nil, err
	}
	var (
		out    []*frame.Frame
		hidden error
	)
	for _, i := range l.runs[keyOf(run)] {
		f := *l.frames[i]
		switch f.Kind {
		case subject.Erase:
			return nil, fmt.Errorf("%w: %s", runlog.ErrErased, run.RunID)
		case subject.Seal:
			hidden = sealed(run)
		}
		if matches(run, &f) {
			out = append(out, &f)
		}
	}
	if hidden != nil {
		return nil, hidden
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: %s", runlog.ErrNotFound, run.RunID)
	}
	return out, nil
}

// After returns later frames of a run; see runlog.Reader.
func (l *Log) After(ctx context.Context, run subject.Run, pos uint64) ([]*frame.Frame, error) {
	frames, err := l.Run(ctx, run)
	if errors.Is(err, runlog.ErrNotFound) {
		return nil, nil
	}
	return slices.DeleteFunc(frames, func(f *frame.Frame) bool { return f.Pos <= pos }), err
}

// Last returns the last frame of a run; see runlog.Reader.
func (l *Log) Last(ctx context.Context, run subject.Run) (*frame.Frame, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readable(ctx); err != nil {
		return nil, err
	}
	for _, i := range slices.Backward(l.runs[keyOf(run)]) {
		f := *l.frames[i]
		switch f.Kind {
		case subject.Erase:
			return nil, fmt.Errorf("%w: %s", runlog.ErrErased, run.RunID)
		case subject.Seal:
			return nil, sealed(run)
		}
		if matches(run, &f) {
			return &f, f.Verify()
		}
	}
	return nil, fmt.Errorf("%w: %s", runlog.ErrNotFound, run.RunID)
}

func matches(run subject.Run, f *frame.Frame) bool {
	return run.WorkflowID == "" || run.WorkflowID == f.Run.WorkflowID
}

// readable returns the injected error of reads, if any. The caller holds mu.
func (l *Log) readable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", runlog.ErrUnavailable, err)
	}
	return l.faults.reads
}
