package runlog

import (
	"context"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// PageBytes bounds a page: the frame that reaches it is its last.
const PageBytes = 1 << 20

// Pager reads a run piece by piece, for those who have much time between two frames.
type Pager interface {
	// First returns the frame that holds the run's record. run.WorkflowID may be
	// empty. Errors: ErrNotFound, ErrUnavailable.
	First(ctx context.Context, run subject.Run) (*frame.Frame, error)
	// Page returns at most n frames of a run beyond a position, in order, and fewer where
	// they reach PageBytes; none is no error. run.WorkflowID must not be empty. Errors: ErrUnavailable.
	Page(ctx context.Context, run subject.Run, pos uint64, n int) ([]*frame.Frame, error)
}
