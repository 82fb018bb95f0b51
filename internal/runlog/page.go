package runlog

import (
	"context"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// PageBytes limits a page: the frame that reaches it is the last.
const PageBytes = 1 << 20

// Pager reads a run in pieces, for readers with long pauses between frames.
type Pager interface {
	// First returns the frame with the run's record. run.WorkflowID may be empty. Errors:
	// ErrNotFound, ErrUnavailable.
	First(ctx context.Context, run subject.Run) (*frame.Frame, error)
	// Page returns at most n frames of a run after a position, in order, and fewer if they reach
	// PageBytes; no frames are not an error. run.WorkflowID must not be empty. Errors:
	// ErrUnavailable.
	Page(ctx context.Context, run subject.Run, pos uint64, n int) ([]*frame.Frame, error)
}

// TenantPager reads the frames of a tenant in pieces.
type TenantPager interface {
	// TenantPage returns at most n frames of a tenant after a position and up to another one, in
	// order, and fewer if they reach PageBytes. read is the position up to which the page has all
	// frames; it is upTo if none follows. Unreadable frames are passed to damaged and left out.
	// Errors: ErrUnavailable.
	TenantPage(ctx context.Context, tenant string, after, upTo uint64, n int, damaged Damaged) (frames []*frame.Frame, read uint64, err error)
}

// Damaged is called for an unreadable frame. Its run is zero if it is unreadable, too.
type Damaged func(run subject.Run, pos uint64, err error)
