package memory

import (
	"fmt"
	"maps"
	"slices"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
)

// faults are the injected faults.
type faults struct {
	appends  []error // one for each next Append
	lostAcks int
	reads    error
}

func (f *faults) takeAppend() error {
	if len(f.appends) == 0 {
		return nil
	}
	err := f.appends[0]
	f.appends = f.appends[1:]
	return err
}

func (f *faults) takeAck() error {
	if f.lostAcks == 0 {
		return nil
	}
	f.lostAcks--
	return fmt.Errorf("%w: acknowledgement lost", runlog.ErrUnavailable)
}

// FailNext makes the next Append fail with err and store nothing. Calls accumulate.
func (l *Log) FailNext(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults.appends = append(l.faults.appends, err)
}

// LoseNextAck makes the next Append store its frame and still return runlog.ErrUnavailable.
func (l *Log) LoseNextAck() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults.lostAcks++
}

// FailReads makes Run, Last, End and Follow fail with err until it is called with nil.
func (l *Log) FailReads(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults.reads = err
	l.wake()
}

// Damage flips a bit in the body of the frame at pos, as a bad disk would. A second call restores
// it, as if another copy were read.
func (l *Log) Damage(pos uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := *l.frames[pos-1]
	c.Body = slices.Clone(c.Body)
	c.Body[len(c.Body)/2] ^= 1
	l.frames[pos-1] = &c
}

// Wipe empties the log, as if its storage had been replaced.
func (l *Log) Wipe() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frames, l.ready = nil, nil
	clear(l.runs)
	clear(l.held)
	l.wake()
}

// CutOff removes everything after pos, as a server does if the end of its file is damaged.
func (l *Log) CutOff(pos uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frames = l.frames[:pos:pos]
	clear(l.runs)
	for i, f := range l.frames {
		if f == nil {
			continue
		}
		l.runs[keyOf(f.Run)] = append(l.runs[keyOf(f.Run)], i)
	}
	l.ready = slices.DeleteFunc(l.ready, func(it *item) bool { return it.frame.Pos > pos })
	maps.DeleteFunc(l.held, func(at uint64, _ *item) bool { return at > pos })
	l.wake()
}

// Frames copies the whole log, in order, without purged frames.
func (l *Log) Frames() []*frame.Frame {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]*frame.Frame, 0, len(l.frames))
	for _, f := range l.frames {
		if f != nil {
			c := *f
			out = append(out, &c)
		}
	}
	return out
}
