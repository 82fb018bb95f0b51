package natslink

import "context"

// OnDisk returns when the record of a stream at a position, and all before it, are on the disk;
// with position 0, when all that the server has acknowledged of the stream by now is. Unless it is
// urgent, the sync may wait a few milliseconds for others to share it. It is
// for a server that acknowledges what it has written but not synced; nil stands for one
// that syncs by itself, or of which no more than its word is asked. Its error is an ErrLost
// where the server is opened anew meanwhile, which may have lost what was not kept.
type OnDisk func(ctx context.Context, stream string, pos uint64, urgent bool) error

// Wait has a record put on the disk at once. Like the others, it may be called on a nil.
func (f OnDisk) Wait(ctx context.Context, stream string, pos uint64) error {
	return f.call(ctx, stream, pos, true)
}

// Join waits for a sync that others may share.
func (f OnDisk) Join(ctx context.Context, stream string, pos uint64) error {
	return f.call(ctx, stream, pos, false)
}

// Begin has a record put on the disk soon, and does not wait for it.
func (f OnDisk) Begin(stream string, pos uint64) {
	ctx, gone := context.WithCancel(context.Background())
	gone()
	_ = f.Join(ctx, stream, pos) // nobody waits; whoever does is told
}

func (f OnDisk) call(ctx context.Context, stream string, pos uint64, urgent bool) error {
	if f == nil {
		return nil
	}
	return f(ctx, stream, pos, urgent)
}
