// Package runlog is the port to the run log, the source of truth of every run.
//
// A run's log is a chain of frames. An append names the frame it follows; if
// the log has moved on since, nothing is written. That one rule gives
// contiguous sequences, no lost update, nothing after a terminal event, and
// the fencing of an executor that has lost its run.
package runlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// ErrConflict says that the run's log has another end than the append expected.
// Nothing was written.
var ErrConflict = errors.New("run log has moved on")

// ErrNotFound says that the log has no frame of the run.
var ErrNotFound = errors.New("run not in log")

// ErrUnavailable says that the log could not be reached in time. Whether the
// append was stored is unknown; appending the same frame again is safe.
var ErrUnavailable = errors.New("run log unavailable")

// MaxFrameBytes is how large a frame can get, and what a log's server must take:
// an event holds the largest payload of an envelope more than once.
const MaxFrameBytes = 8 << 20

// TooLargeError says that a frame is larger than the log's server takes. Nothing
// was written, and appending it again changes nothing.
type TooLargeError struct {
	// Size is that of the frame, Limit that of the server, in bytes.
	Size, Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("frame of %d bytes: the run log's server takes %d", e.Size, e.Limit)
}

// Appender writes frames.
type Appender interface {
	// Append stores f if the run's last frame is at position after (0: no frame
	// of the run id is there, under any workflow of the tenant) and returns f's position. The frame is durable when
	// Append returns. Appending a frame that is already stored there returns its
	// position and no error. Errors: ErrConflict, ErrUnavailable, *TooLargeError.
	Append(ctx context.Context, f *frame.Frame, after uint64) (pos uint64, err error)
}

// Stager is a log that takes frames before they are on the disk, for a writer that has more to do
// meanwhile. All else of a log's contract holds: nobody can take the frame's place any more, and it
// outlives every process. Only a power cut of the log's machine may take it away, with
// all that came after it in the log.
type Stager interface {
	// Stage is Append, without the wait for the disk, to which the frame is on its way. A later
	// Append that has returned, of any frame behind it, has brought it there, too.
	Stage(ctx context.Context, f *frame.Frame, after uint64) (pos uint64, err error)
	// Keep returns when the log is on the disk up to a position. Errors: ErrUnavailable.
	Keep(ctx context.Context, pos uint64) error
}

// Stage appends to a log as early as it can; Keep is called for afterwards. A log that is no
// Stager appends.
func Stage(ctx context.Context, to Appender, f *frame.Frame, after uint64) (pos uint64, err error) {
	if s, ok := to.(Stager); ok {
		return s.Stage(ctx, f, after)
	}
	return to.Append(ctx, f, after)
}

// Keep has what was staged on the disk.
func Keep(ctx context.Context, log Appender, pos uint64) error {
	if s, ok := log.(Stager); ok {
		return s.Keep(ctx, pos)
	}
	return nil
}

// Reader reads frames.
type Reader interface {
	// Run returns all frames of a run, in order. run.WorkflowID may be empty.
	// Errors: ErrNotFound, ErrUnavailable.
	Run(ctx context.Context, run subject.Run) ([]*frame.Frame, error)
	// After returns the frames of a run beyond a position, in order; none is no
	// error. run.WorkflowID must not be empty. Errors: ErrUnavailable.
	After(ctx context.Context, run subject.Run, pos uint64) ([]*frame.Frame, error)
	// First returns the frame of a run's record, Last its last frame. run.WorkflowID may
	// be empty. Errors: ErrNotFound, ErrUnavailable.
	First(ctx context.Context, run subject.Run) (*frame.Frame, error)
	Last(ctx context.Context, run subject.Run) (*frame.Frame, error)
}

// Log both reads and writes.
type Log interface {
	Appender
	Reader
}

// AckWait is how long a delivery may stay silent before it is handed out again, and Extend is
// called in less. It is long because it is not what decides who executes a run: a dispatcher's
// lease does (frame.Ownership), and its runs are put back into the queue when it expires. A
// constant, so that no two dispatchers differ.
const AckWait = 30 * time.Second

// Delivery is a frame that hands a run to a dispatcher. Exactly one of Ack, Retry and Return
// ends it; until then the holder keeps it with Extend. A holder that just drops it leaves it to
// be handed out again after AckWait.
type Delivery interface {
	// Frame is the start or wake frame. Of one that is damaged it has the run, the kind and the
	// position alone, and Redelivered is true.
	Frame() *frame.Frame
	// Redelivered reports that another holder may have worked on the run: its state must be
	// read from its log. It does not entitle to execute the run.
	Redelivered() bool
	// Tries is how often the frame was handed out, this time included.
	Tries() int
	// Extend keeps the delivery for another AckWait.
	Extend() error
	// Ack says that the run needs no dispatcher until the next wake.
	Ack() error
	// Retry hands the run out again after the log's backoff.
	Retry() error
	// Return hands the run out again immediately.
	Return() error
}

// Queue hands out runs.
type Queue interface {
	// Next blocks until a run is handed out or ctx ends. Reads of the run may not find yet
	// the frame that it is handed out for.
	Next(ctx context.Context) (Delivery, error)
	// Want sets how many runs may be fetched ahead of the next calls of Next: the caller has a
	// free slot for each. It is 1 until set.
	Want(n int)
	// Close stops fetching and gives back what was fetched and not returned by Next.
	Close()
	// Depth is what is in the queue. Errors: ErrUnavailable.
	Depth(ctx context.Context) (Depth, error)
}

// Depth is what is in a queue: deliveries that have not been acknowledged.
type Depth struct {
	// Waiting have not been handed out, Held have.
	Waiting, Held int
	// Fetched is the part of Held that this process fetched and Next has not returned.
	Fetched int
	// HandedOut is how many have ever been; a run that is handed out again counts again.
	HandedOut uint64
	// Parked is the part of Waiting that was taken from the queue and waits for a free slot.
	// Limited wait for a limit of their workflow or tenant, and are not part of Waiting.
	Parked, Limited int
}

// Follower reads the whole log in order.
type Follower interface {
	// Follow calls handle with batches of frames with positions after pos, in
	// order and without gaps, until ctx ends or handle fails. Frames that cannot
	// be read, or do not match their hash, are passed to damaged and left out of
	// their batch; damaged is called before the batch the frame stood in, by the
	// same goroutine. Reads of a run find the frames that were handed over.
	Follow(ctx context.Context, pos uint64, handle func(batch []*frame.Frame) error, damaged func(pos uint64, err error)) error
	// End is the position of the last frame of the log; 0 when empty.
	End(ctx context.Context) (uint64, error)
}
