package natslink

import "context"

// OnDisk waits until the record of a stream at a position, and all before it, are on disk; position
// 0 means everything the server has acknowledged so far. Unless it is urgent, the sync may wait a
// few milliseconds to be shared. It is for a server that acknowledges before it syncs; nil means
// that no wait is needed or wanted. It returns ErrLost if the server restarts in the meantime,
// because it may have lost unsynced data.
type OnDisk func(ctx context.Context, stream string, pos uint64, urgent bool) error

// Wait syncs a record immediately. Like the other methods, it may be called on nil.
func (f OnDisk) Wait(ctx context.Context, stream string, pos uint64) error {
	return f.call(ctx, stream, pos, true)
}

// Join waits for a sync that may be shared.
func (f OnDisk) Join(ctx context.Context, stream string, pos uint64) error {
	return f.call(ctx, stream, pos, false)
}

// Begin starts a sync and does not wait for it.
func (f OnDisk) Begin(stream string, pos uint64) {
	ctx, gone := context.WithCancel(context.Background())
	gone()
	_ = f.Join(ctx, stream, pos) // errors are reported to callers that wait
}

func (f OnDisk) call(ctx context.Context, stream string, pos uint64, urgent bool) error {
	if f == nil {
		return nil
	}
	return f(ctx, stream, pos, urgent)
}
