// Package runlog is the port to the run log, the source of truth of every run.
//
// A run's log is a chain of frames. An append names the frame it follows; if the log has grown
// since, nothing is written. This rule alone gives contiguous sequences, no lost updates, nothing
// after a terminal event, and the fencing of a dispatcher that has lost its run.
package runlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// ErrConflict means that the run's log does not end where the append expected. Nothing was written.
var ErrConflict = errors.New("run log has moved on")

// ErrNotFound means that the log has no frame of the run.
var ErrNotFound = errors.New("run not in log")

// ErrErased means that the run was erased. It is an ErrNotFound.
var ErrErased = fmt.Errorf("%w: it was erased", ErrNotFound)

// ErrSealed means that the run's frames are in the cold store, which a plain log does not read: see
// package cold.
var ErrSealed = errors.New("the run is in the cold store")

// ErrActive means that a run has not ended, so it cannot be erased.
var ErrActive = errors.New("run has not ended")

// ErrRemovalDenied means that the log's server denies the removal of frames.
var ErrRemovalDenied = errors.New("the run log does not allow the removal of frames")

// ErrUnavailable means that the log could not be reached in time. The append may or may not be stored;
// appending the same frame again is safe.
var ErrUnavailable = errors.New("run log unavailable")

// MaxFrameBytes is the maximum size of a frame, which a log's server must accept: an event can hold
// the largest payload of an envelope more than once.
const MaxFrameBytes = 8 << 20

// TooLargeError means that a frame exceeds the server's limit. Nothing was written, and a retry fails too.
type TooLargeError struct {
	// Size is the size of the frame, Limit the server's limit, in bytes.
	Size, Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("frame is %d bytes, the run log server's limit is %d", e.Size, e.Limit)
}

// Appender writes frames.
type Appender interface {
	// Append stores f if the run's last frame is at position after (0: the tenant has no frame with
	// this run id, under any workflow) and returns f's position. The frame is durable when Append
	// returns. Appending a frame that is already stored there returns its position and no error.
	// Errors: ErrConflict, ErrUnavailable, *TooLargeError.
	Append(ctx context.Context, f *frame.Frame, after uint64) (pos uint64, err error)
}

// Stager is a log that accepts frames before they are on disk, for a writer with other work to do
// in the meantime. The rest of the log's contract holds: no other frame can take the frame's place,
// and it outlives every process. Only a power failure of the log's machine can lose it, together
// with everything after it.
type Stager interface {
	// Stage is Append without waiting for the disk. A later Append of any frame after it also makes
	// it durable.
	Stage(ctx context.Context, f *frame.Frame, after uint64) (pos uint64, err error)
	// Keep returns when the log is on disk up to a position. Errors: ErrUnavailable.
	Keep(ctx context.Context, pos uint64) error
}

// Stage appends without waiting for the disk, if the log supports it; call Keep afterwards. Other
// logs append.
func Stage(ctx context.Context, to Appender, f *frame.Frame, after uint64) (pos uint64, err error) {
	if s, ok := to.(Stager); ok {
		return s.Stage(ctx, f, after)
	}
	return to.Append(ctx, f, after)
}

// Keep waits until staged frames are on disk.
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
	// After returns the frames of a run after a position, in order; no frames are not an error.
	// run.WorkflowID must not be empty. Errors: ErrUnavailable.
	After(ctx context.Context, run subject.Run, pos uint64) ([]*frame.Frame, error)
	// First returns the frame of a run's record, Last its last frame. run.WorkflowID may be empty.
	// Errors: ErrNotFound, ErrUnavailable.
	First(ctx context.Context, run subject.Run) (*frame.Frame, error)
	Last(ctx context.Context, run subject.Run) (*frame.Frame, error)
}

// Log reads and writes.
type Log interface {
	Appender
	Reader
}

// AckWait is how long a delivery may go without Extend before it is redelivered. It is long because
// the dispatcher's lease decides who executes a run (frame.Ownership), and when the lease expires,
// its runs are put back into the queue. It is a constant, so that all dispatchers agree.
const AckWait = 30 * time.Second

// Delivery is a frame that hands a run to a dispatcher. Exactly one of Ack, Retry and Return ends
// it; until then the holder keeps it with Extend. A dropped delivery is redelivered after AckWait.
type Delivery interface {
	// Frame returns the start or wake frame. For a damaged frame it has only the run, the kind and
	// the position, and Redelivered is true.
	Frame() *frame.Frame
	// Redelivered reports whether another holder may have worked on the run, so that its state must
	// be read from its log. It does not entitle to execute the run.
	Redelivered() bool
	// Tries is the number of deliveries of the frame, including this one.
	Tries() int
	// Extend keeps the delivery for another AckWait.
	Extend() error
	// Ack: the run needs no dispatcher until the next wake.
	Ack() error
	// Retry redelivers the run after the log's backoff.
	Retry() error
	// Return redelivers the run immediately.
	Return() error
}

// Queue hands out runs.
type Queue interface {
	// Next blocks until a run is delivered or ctx ends. Reads of the run may not yet find the
	// delivered frame.
	Next(ctx context.Context) (Delivery, error)
	// Want sets how many runs may be fetched ahead of the next calls of Next: the caller has a free
	// slot for each. The default is 1.
	Want(n int)
	// Close stops fetching and returns the runs that were fetched but not delivered by Next.
	Close()
	// Depth returns the queue's counts. Errors: ErrUnavailable.
	Depth(ctx context.Context) (Depth, error)
}

// Depth counts the unacknowledged deliveries of a queue.
type Depth struct {
	// Waiting were not delivered yet, InDelivery were delivered and are not acknowledged.
	Waiting, InDelivery int
	// Fetched is the part of InDelivery that this process fetched but Next has not returned.
	Fetched int
	// HandedOut is the total number of deliveries, including redeliveries.
	HandedOut uint64
	// Delivered is the position of the last frame that was delivered. Later ones are in the queue.
	Delivered uint64
	// Parked is the part of Waiting that was taken from the queue and waits for a free slot.
	// Limited wait for a limit of their workflow or tenant, and are not part of Waiting.
	Parked, Limited int
}

// RetryAfter is the pause of a run after its delivery number tries failed. It doubles each time, up to
// eight times the first: most outages end within seconds, and a run has a time limit.
func RetryAfter(first time.Duration, tries int) time.Duration {
	return first << min(max(tries-1, 0), 3)
}

// Follower reads the whole log in order.
type Follower interface {
	// Follow calls handle with batches of frames with positions after pos, in order and without
	// gaps, until ctx ends or handle fails. Frames that are unreadable, or do not match their hash,
	// are passed to damaged and left out of their batch; damaged is called before the batch that
	// contained the frame, in the same goroutine. Its run is zero if it is unreadable, too. Reads of a run find the frames passed to handle.
	Follow(ctx context.Context, pos uint64, handle func(batch []*frame.Frame) error, damaged func(run subject.Run, pos uint64, err error)) error
	// End returns the position of the log's last frame; 0 when empty.
	End(ctx context.Context) (uint64, error)
	// Newest returns the position of the last frame that is there. It is before End if the log has lost
	// its last frames and knows that it had them.
	Newest(ctx context.Context) (uint64, error)
}
