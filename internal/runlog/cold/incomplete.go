package cold

import (
	"context"
	"fmt"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// Incomplete is a store that lacks sealed runs of the log, because its file was lost or replaced. It is
// not written: what it got would be lost when the file is restored. So erasures of sealed runs wait.
type Incomplete struct {
	// Store has the other runs; nil without a store.
	Store
}

// errIncomplete means that an erasure waits.
var errIncomplete = fmt.Errorf("%w: the cold store lacks sealed runs; restore it, or give them up", runlog.ErrUnavailable)

// Blocks returns the blocks of a run; see Reader.
func (s Incomplete) Blocks(ctx context.Context, run subject.Run) (subject.Run, []Block, error) {
	if s.Store == nil {
		return run, nil, fmt.Errorf("%w: %s", ErrNotFound, run.RunID)
	}
	return s.Store.Blocks(ctx, run)
}

// Data returns the data of a block; see Reader.
func (s Incomplete) Data(ctx context.Context, run subject.Run, block int) ([]byte, error) {
	if s.Store == nil {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, run.RunID)
	}
	return s.Store.Data(ctx, run, block)
}

// Totals counts the objects; see Store.
func (s Incomplete) Totals(ctx context.Context) (Totals, error) {
	if s.Store == nil {
		return Totals{}, nil
	}
	return s.Store.Totals(ctx)
}

// Released reports whether an object was confirmed as released; see Store.
func (s Incomplete) Released(ctx context.Context, run subject.Run) (bool, error) {
	if s.Store == nil {
		return false, nil
	}
	return s.Store.Released(ctx, run)
}

// Delete removes the object of a run that was not sealed, if there is one; see Store.
func (s Incomplete) Delete(ctx context.Context, run subject.Run) error {
	if s.Store == nil {
		return nil
	}
	return s.Store.Delete(ctx, run)
}

// erasable returns why a marked run cannot be erased now.
func (l *Log) erasable(mark *frame.Frame) error {
	if _, lacks := l.store.(Incomplete); (lacks || l.doubted.Load()) && ofSealed(mark) {
		return errIncomplete
	}
	return nil
}
