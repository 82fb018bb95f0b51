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
	// ErrPermanent, ErrUnavailable.
	Seal(ctx context.Context, run subject.Run, head frame.Head, positions []uint64) error
	// Drop removes the frames of a sealed run, and overwrites their bytes: an erasure of the run later
	// does not find them. The last ones go first, so that what is left is the beginning of the run. It
	// may be repeated. Errors: ErrConflict if the run is not sealed, ErrPermanent, ErrUnavailable.
	Drop(ctx context.Context, run subject.Run) error
}
