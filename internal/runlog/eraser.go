package runlog

import (
	"context"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// Eraser removes runs from the log, in two steps. Mark appends a frame of kind erase, which is the
// record of the intent: from then on the run counts as not found, its id cannot be used again, and
// every reader of the log learns that the run is erased. Purge removes the other frames. A process
// that dies in between loses nothing: Erasures delivers the frame again.
//
// The frame of kind erase stays in the log. It lists the removed positions, so that they do not count
// as lost.
type Eraser interface {
	// Mark marks a run as erased, if it has ended or its log is damaged. run.WorkflowID may be empty.
	// marked is false if the run was marked before. Errors: ErrNotFound, ErrActive, ErrRemovalDenied,
	// ErrUnavailable.
	Mark(ctx context.Context, run subject.Run, why frame.Cause) (marked bool, err error)
	// Remaining returns the frames of a marked run that are still in the log, in order, without those
	// that cannot be read. Errors: ErrUnavailable.
	Remaining(ctx context.Context, mark *frame.Frame) ([]*frame.Frame, error)
	// Purge removes the frames of a marked run from the log, and overwrites their bytes unless the run
	// has expired: a server removes those when it compacts its files. It removes the last ones first:
	// what is left is the beginning of the run. It may be repeated. Errors: ErrRemovalDenied,
	// ErrUnavailable.
	Purge(ctx context.Context, mark *frame.Frame) error
	// Erasures calls handle with the frames of kind erase, one after the other, and again until handle
	// returns nil, also after a restart. Several processes share them. It returns when ctx ends.
	// Errors: ErrUnavailable.
	Erasures(ctx context.Context, handle func(ctx context.Context, mark *frame.Frame) error) error
}
