package ingest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/services/eventlog/store"
)

// shortFor is how many times in a row the log must end before the last read frame until it counts as
// lost. Compare is called every second, and a leader cut off from its peers notices only after
// some ten seconds that it is no longer the leader.
const shortFor = 15

var errShort = errors.New("the log ends before the last frame that was read from it")

// ending tracks the log's end and the frames that were beyond it.
type ending struct {
	mu    sync.Mutex // guards what follows
	short int        // times in a row that the log ended before the last read frame
	low   uint64     // the earliest end since the log was last complete
	// last is the last read frame when the log was first seen to end before it. There may be new
	// frames behind it by now; they are not evidence of what is gone.
	last store.Tail
	gone map[store.Tail]uint64
}

func newEnding() *ending { return &ending{low: math.MaxUint64, gone: map[store.Tail]uint64{}} }

// checkEnd records where the log ends, and reports whether it must be followed again: it has ended too
// early for long enough, or new frames may have replaced the lost ones.
func (e *ending) checkEnd(read, end uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if end >= read {
		was := e.short > 0
		e.short = 0
		return was
	}
	e.low = min(e.low, end)
	e.short++
	if e.short < shortFor {
		return false
	}
	e.short = 0
	return true
}

// keepTail records the last read frame when the log ended before it.
func (e *ending) keepTail(last store.Tail) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last.Pos == 0 {
		e.last = last
	}
}

// from returns the frame that identifies the log that was read, up to tail.
func (e *ending) from(tail store.Tail) store.Tail {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last.Pos > 0 && e.last.Pos < tail.Pos {
		return e.last
	}
	return tail
}

// behind records that the log ends before the last read frame.
func (e *ending) behind(last store.Tail, end uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.note(last, min(e.low, end))
}

// replaced records that another frame replaced the last read one.
func (e *ending) replaced(last store.Tail) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.note(last, min(e.low, last.Pos-1))
}

func (e *ending) note(last store.Tail, end uint64) {
	e.gone[last] = max(e.gone[last], last.Pos-end)
	e.low, e.last = math.MaxUint64, store.Tail{}
}

// confirm records that the log still has the last read frame.
func (e *ending) confirm() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.low, e.last = math.MaxUint64, store.Tail{}
}

// back checks whether lost frames are there again, because another server leads.
func (e *ending) back(frames []*frame.Frame) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.gone) == 0 {
		return
	}
	for _, f := range frames {
		delete(e.gone, store.Tail{Pos: f.Pos, Hash: f.Hash})
	}
}

func (e *ending) lost() (n uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, g := range e.gone {
		n += g
	}
	return n
}

// Compare checks where the log ends, and follows it again if it has lost its end: the server does
// not report a loss and reuses the positions. It is called every second.
func (i *Ingester) Compare(ctx context.Context) error {
	read := i.progress.applied() // read first, because the log continues to grow
	end, err := i.log.End(ctx)
	if err != nil {
		return err
	}
	if end < read {
		tail, err := i.store.Tail(ctx)
		if err != nil {
			return err
		}
		i.ending.keepTail(tail)
	}
	if i.ending.checkEnd(read, end) {
		i.again(fmt.Errorf("%w: it was read up to %d and ends at %d", errShort, read, end))
	}
	return nil
}
