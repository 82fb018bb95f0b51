package natsd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// disk syncs the server's streams. The server writes a record to a file before it acknowledges it,
// and syncs nothing. Concurrent waiters share one sync. The server's own option syncs for each
// record alone and blocks everything else, reads included. It is safe for concurrent use. See
// docs/adr/0035.
type disk struct {
	dir  string // of the streams' folders
	sync syncer
	pace time.Duration // see pace

	mu     sync.Mutex // guards the fields below
	tails  map[string]*tail
	closed bool
}

func newDisk(storeDir string) *disk {
	return &disk{dir: streamsDir(storeDir), sync: onDisk{}, pace: pace, tails: map[string]*tail{}}
}

// pace is how long a sync that is not urgent waits for others to share it. At 500 model calls a
// second, whose frames are not urgent, it halves the cost of syncs. See docs/adr/0035.
const pace = 2 * time.Millisecond

// streamsDir is the folder of the streams of the host's account.
func streamsDir(storeDir string) string { return filepath.Join(storeDir, "jetstream", "$G", "streams") }

// tail is the end of a stream: the positions written and synced.
type tail struct {
	files *folder
	pace  time.Duration

	mu sync.Mutex // guards the fields below
	// written is a position up to which the server has written, kept one up to which everything is
	// synced.
	written, kept uint64
	syncing       *round
	// failed is the error of a failed sync. It is final until the server is reopened: a repeated
	// sync may succeed although the system dropped the data.
	failed error
}

// round is a sync in progress or about to start. When it ends without an error, everything written
// before its start is on disk.
type round struct {
	hurry chan struct{} // closed: start immediately
	began bool
	upTo  uint64 // the position written at its start
	done  chan struct{}
	err   error
}

func newRound() *round { return &round{hurry: make(chan struct{}), done: make(chan struct{})} }

// hasten ends the wait of a round for others. The caller holds the tail's lock.
func (r *round) hasten() {
	select {
	case <-r.hurry:
	default:
		close(r.hurry)
	}
}

func (d *disk) tail(stream string) *tail {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.tails[stream]
	if t == nil {
		t = &tail{files: newFolder(filepath.Join(d.dir, stream), d.sync), pace: d.pace}
		t.files.closed = d.closed
		d.tails[stream] = t
	}
	return t
}

func (d *disk) all() []*tail {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]*tail, 0, len(d.tails))
	for _, t := range d.tails {
		out = append(out, t)
	}
	return out
}

// keep waits until a stream is on disk up to a position; see natslink.OnDisk.
func (d *disk) keep(ctx context.Context, stream string, pos uint64, urgent bool) error {
	t := d.tail(stream)
	if pos == 0 {
		return t.all(ctx, urgent)
	}
	return t.keep(ctx, pos, urgent)
}

func (t *tail) keep(ctx context.Context, pos uint64, urgent bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written = max(t.written, pos)
	for t.kept < pos {
		r := t.current(urgent)
		err := t.await(ctx, r)
		if err != nil && (r.upTo >= pos || t.failed != nil || ctx.Err() != nil) { // otherwise the error was about an earlier position
			return err
		}
	}
	return nil
}

// all waits for a round that starts after the call.
func (t *tail) all(ctx context.Context, urgent bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.syncing; r != nil && r.began {
		if err := t.await(ctx, r); err != nil && (t.failed != nil || ctx.Err() != nil) { // otherwise the error was about an earlier round
			return err
		}
	}
	return t.await(ctx, t.current(urgent))
}

// current returns the waiting round, or a new one. The caller holds the lock.
func (t *tail) current(urgent bool) *round {
	if t.syncing == nil && t.failed != nil {
		return &round{done: closed, err: t.failed}
	}
	if t.syncing == nil {
		t.syncing = newRound()
		go t.run(t.syncing)
	}
	if urgent {
		t.syncing.hasten()
	}
	return t.syncing
}

// closed is the done channel of a finished round.
var closed = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (t *tail) run(r *round) {
	select {
	case <-r.hurry:
	case <-time.After(t.pace):
	}
	t.mu.Lock()
	r.began, r.upTo = true, t.written
	t.mu.Unlock()
	err := t.files.syncBlocks()
	t.mu.Lock()
	defer t.mu.Unlock()
	if err = t.judge(err); err == nil {
		t.kept = max(t.kept, r.upTo)
	}
	t.syncing, r.err = nil, err
	close(r.done)
	if t.written > r.upTo { // needed even if no caller waits
		t.current(false)
	}
}

// judge records a failed sync. The caller holds the lock.
func (t *tail) judge(err error) error {
	if errors.Is(err, errUnsynced) {
		err = fmt.Errorf("%w: %w", ErrStorage, err)
		t.failed = err
	}
	return err
}

// settle syncs everything except the newest block.
func (t *tail) settle() error {
	err := t.files.settle()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.judge(err)
}

// await releases the lock until a round has ended. It returns the round's error, or the context's.
func (t *tail) await(ctx context.Context, r *round) error {
	t.mu.Unlock()
	defer t.mu.Lock()
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settle syncs what the server has written other than records: the state of streams and consumers, and
// rewritten blocks.
func (d *disk) settle() error {
	var errs []error
	for _, t := range d.all() {
		errs = append(errs, t.settle())
	}
	return errors.Join(errs...)
}

// broken returns why writes cannot be synced; nil if they can.
func (d *disk) broken() error {
	for _, t := range d.all() {
		t.mu.Lock()
		err := t.failed
		t.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// close closes the files. No sync is possible after it.
func (d *disk) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	for _, t := range d.all() {
		t.files.close()
	}
}
