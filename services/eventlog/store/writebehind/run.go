package writebehind

import (
	"slices"
	"sort"

	"waybill.dev/waybill/services/eventlog/store"
)

// run is the cached part of a run: its row and its last frames, without gaps.
type run struct {
	row     store.Run
	frames  []store.Frame
	bytes   int
	pending bool // its row is part of the pending batch
}

// Overhead in bytes of a run and of a frame, without their texts.
const (
	runBytes   = 1024
	frameBytes = 256
	wordBytes  = 32 // of an indexed word, with its text
)

// add appends a frame unless it is already there.
func (r *run) add(f store.Frame) bool {
	if n := len(r.frames); n > 0 && f.First <= r.frames[n-1].First {
		return false
	}
	r.frames = append(r.frames, f)
	r.bytes += frameSize(f)
	return true
}

func frameSize(f store.Frame) int { return frameBytes + len(f.Body) }

// covers reports whether memory holds every frame from sequence from on.
func (r *run) covers(from int) bool { return len(r.frames) > 0 && r.frames[0].First <= from }

// dropFrames removes the frames that end at or before event head.
func (r *run) dropFrames(head int) {
	n := sort.Search(len(r.frames), func(i int) bool { return r.frames[i].Last > head })
	for _, f := range r.frames[:n] {
		r.bytes -= frameSize(f)
	}
	r.frames = slices.Clone(r.frames[n:])
}

// extend appends frames to a page, as defined by store.Reader's Frames. It returns false if
// frames are missing, either before the cached ones or because they have left memory.
func (r *run) extend(page []store.Frame, from, limit int) ([]store.Frame, bool) {
	events, size, next := 0, 0, from
	for _, f := range page {
		events, size, next = events+eventsOf(f, from), size+len(f.Body), f.Last+1
	}
	first := sort.Search(len(r.frames), func(i int) bool { return r.frames[i].Last >= next })
	for _, f := range r.frames[first:] {
		if f.First > next {
			return page, false
		}
		if events >= limit || size >= store.PageBytes {
			return page, true
		}
		page = append(page, f)
		events, size, next = events+eventsOf(f, from), size+len(f.Body), f.Last+1
	}
	return page, events >= limit || size >= store.PageBytes || next > r.row.Head
}

// eventsOf counts a frame's events from a sequence on; a record has none.
func eventsOf(f store.Frame, from int) int { return f.Last + 1 - max(f.First, from, 0) }
