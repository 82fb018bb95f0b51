package runlog

import (
	"context"
	"time"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// Sealer removes ended runs whose frames are stored elsewhere. Seal appends a frame of kind seal, which
// is the record of the move: from then on reads of the run return ErrSealed once they reach it, the id
// stays in use, and every reader of the log learns that the run is sealed. Drop removes the other
// frames.
//
// The frame of kind seal stays in the log, also when the run is erased. It lists the removed positions,
// so that they do not count as lost.
type Sealer interface {
	// Ended returns the last frames of up to n runs that ended before an instant and are neither sealed
	// nor erased, in the order of the log, after a position. next is the position to continue after: no
	// run of which the log knew at the call is left out before it. more is false if no other run ended
	// before the instant. Errors: ErrUnavailable.
	Ended(ctx context.Context, after uint64, before time.Time, n int) (ends []*frame.Frame, next uint64, more bool, err error)
	// Seal marks a run as sealed, if its last frame is the end at head. The frames have these
	// positions. It may be repeated. Errors: ErrConflict if the run is erased or has no such end,
	// ErrRemovalDenied, ErrUnavailable.
	Seal(ctx context.Context, run subject.Run, head frame.Head, positions []uint64) error
	// Drop removes the frames of a sealed run, which have these positions. The last ones go first, so that
	// what is left is the beginning of the run. It may be repeated. Errors: ErrConflict if the run is not
	// sealed, ErrRemovalDenied, ErrUnavailable.
	Drop(ctx context.Context, run subject.Run, positions []uint64, how Removal) error
	// Extent returns the size of the log. Errors: ErrUnavailable.
	Extent(ctx context.Context) (Extent, error)
}

// Removal is how the bytes of removed frames leave the log's files.
type Removal int

const (
	// Overwrite overwrites the bytes. A server writes the whole file of each frame again.
	Overwrite Removal = iota
	// Release leaves the bytes to the server, which writes a file again without them when they are more
	// than half of it. The file that it appends to keeps them.
	Release
)

// Extent is the size of a log.
type Extent struct {
	// Bytes is the size of what is there, End the position of the last frame.
	Bytes, End uint64
	// FileBytes is the maximum size of a file; 0 if overwriting costs nothing.
	FileBytes uint64
}

// leastBytes is less than any frame takes in a file, with its subject and its headers.
const leastBytes = 256

// Behind returns how many bytes at least were appended after a position. Frames that are removed since
// count, too: they have filled the server's files.
func (e Extent) Behind(pos uint64) uint64 {
	if pos >= e.End {
		return 0
	}
	return (e.End - pos) * leastBytes
}

// OverwriteBytes is how much a server writes to overwrite a number of frames.
func (e Extent) OverwriteBytes(frames int) uint64 {
	return uint64(frames) * min(e.FileBytes, e.Bytes) //nolint:gosec // G115: not negative
}
