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

// shortFor is how many times in a row the log has to end before what was read of it until that
// is believed: a leader that was cut off from the others knows only after some ten seconds that
// it is one no more, and Compare is called every second.
const shortFor = 15

var errShort = errors.New("the log ended before what was read of it")

// ending is what is known of the log's end, and of frames that were behind it.
type ending struct {
	mu    sync.Mutex // guards what follows
	short int        // times in a row that the log ended before what was read
	low   uint64     // the earliest that it ended since it was last seen to be as it was
	// last is what was the last frame that was read when the log was first seen to end before
	// it; behind it there may be new frames by now, which say nothing of what is gone.
	last store.Tail
	gone map[store.Tail]uint64
}

func newEnding() *ending { return &ending{low: math.MaxUint64, gone: map[store.Tail]uint64{}} }

// seen takes where the log ends, and reports whether it has to be followed anew: it has ended
// too early for long, or it did and now others may have the places of what is gone.
func (e *ending) seen(read, end uint64) bool {
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

// held notes what was read last when the log ended before that.
func (e *ending) held(last store.Tail) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last.Pos == 0 {
		e.last = last
	}
}

// from is the frame that tells whether the log is the one that was read, up to tail.
func (e *ending) from(tail store.Tail) store.Tail {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last.Pos > 0 && e.last.Pos < tail.Pos {
		return e.last
	}
	return tail
}

// behind notes that the log ends before the last frame that was read of it.
func (e *ending) behind(last store.Tail, end uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.note(last, min(e.low, end))
}

// replaced notes that another frame has the place of the last that was read.
func (e *ending) replaced(last store.Tail) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.note(last, min(e.low, last.Pos-1))
}

func (e *ending) note(last store.Tail, end uint64) {
	e.gone[last] = max(e.gone[last], last.Pos-end)
	e.low, e.last = math.MaxUint64, store.Tail{}
}

// asItWas notes that the last frame that was read has its place.
func (e *ending) asItWas() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.low, e.last = math.MaxUint64, store.Tail{}
}

// back looks whether frames that were gone are there again: another server leads.
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

// Compare asks the log where it ends, and follows it anew where it has lost its end: a server
// says nothing of that, and gives the places to other frames. It is called every second.
func (i *Ingester) Compare(ctx context.Context) error {
	read := i.progress.applied() // first: the log goes on
	end, err := i.log.End(ctx)
	if err != nil {
		return err
	}
	if end < read {
		tail, err := i.store.Tail(ctx)
		if err != nil {
			return err
		}
		i.ending.held(tail)
	}
	if i.ending.seen(read, end) {
		i.again(fmt.Errorf("%w: it was read up to %d and ends at %d", errShort, read, end))
	}
	return nil
}
