package runlog

import (
	"context"
	"fmt"
	"sync/atomic"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// Late is a log that is opened after its users were created. Until then its methods return
// ErrUnavailable. The zero value is ready to use.
type Late struct{ log atomic.Pointer[Log] }

// Open sets the log.
func (l *Late) Open(log Log) { l.log.Store(&log) }

// opened returns the log, or an error if it is not open yet.
func (l *Late) opened() (Log, error) {
	if p := l.log.Load(); p != nil {
		return *p, nil
	}
	return nil, fmt.Errorf("%w: it is not open yet", ErrUnavailable)
}

// Append stores a frame; see Appender.
func (l *Late) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	log, err := l.opened()
	if err != nil {
		return 0, err
	}
	return log.Append(ctx, f, after)
}

// Stage stores a frame without waiting for the disk; see Stager.
func (l *Late) Stage(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	log, err := l.opened()
	if err != nil {
		return 0, err
	}
	return Stage(ctx, log, f, after)
}

// Keep waits for the disk; see Stager.
func (l *Late) Keep(ctx context.Context, pos uint64) error {
	log, err := l.opened()
	if err != nil {
		return err
	}
	return Keep(ctx, log, pos)
}

// Run returns all frames of a run; see Reader.
func (l *Late) Run(ctx context.Context, run subject.Run) ([]*frame.Frame, error) {
	log, err := l.opened()
	if err != nil {
		return nil, err
	}
	return log.Run(ctx, run)
}

// After returns later frames of a run; see Reader.
func (l *Late) After(ctx context.Context, run subject.Run, pos uint64) ([]*frame.Frame, error) {
	log, err := l.opened()
	if err != nil {
		return nil, err
	}
	return log.After(ctx, run, pos)
}

// First returns the first frame of a run; see Reader.
func (l *Late) First(ctx context.Context, run subject.Run) (*frame.Frame, error) {
	log, err := l.opened()
	if err != nil {
		return nil, err
	}
	return log.First(ctx, run)
}

// Last returns the last frame of a run; see Reader.
func (l *Late) Last(ctx context.Context, run subject.Run) (*frame.Frame, error) {
	log, err := l.opened()
	if err != nil {
		return nil, err
	}
	return log.Last(ctx, run)
}
