package natsd

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// disk has the server's streams on the disk: the server writes a record into a file before it
// acknowledges it, and syncs none. Those who wait for theirs at the same time share a
// sync, which the server, with its own option for that, gives to each alone while all
// others wait, those who read included. It is safe for concurrent use. See docs/adr/0035.
type disk struct {
	dir  string // of the streams' folders
	sync syncer
	pace time.Duration // see pace

	mu     sync.Mutex // guards what follows
	tails  map[string]*tail
	closed bool
}

func newDisk(storeDir string) *disk {
	return &disk{dir: streamsDir(storeDir), sync: onDisk{}, pace: pace, tails: map[string]*tail{}}
}

// pace is how long a sync that is not urgent waits for others to share it. At 500 calls of models a second, whose
// frames nobody waits for, it saves half of what syncs cost. See docs/adr/0035.
const pace = 2 * time.Millisecond

// streamsDir is where a server keeps the streams of the host's account.
func streamsDir(storeDir string) string { return filepath.Join(storeDir, "jetstream", "$G", "streams") }

// tail is the end of a stream: what is written of it, and what is on the disk.
type tail struct {
	files *folder
	pace  time.Duration

	mu sync.Mutex // guards what follows
	// written is a position up to which the server is known to have written, kept one up to
	// which all is on the disk.
	written, kept uint64
	syncing       *round
	// failed is why nothing can be kept until the server is opened again. A sync that is tried again after it
	// has failed may succeed although the system has dropped what it could not write.
	failed error
}

// round is a sync that has begun, or is about to. What is written before it begins is on the disk when it has ended without an error.
type round struct {
	hurry chan struct{} // closed: it begins at once
	began bool
	upTo  uint64 // what was written when it began
	done  chan struct{}
	err   error
}

func newRound() *round { return &round{hurry: make(chan struct{}), done: make(chan struct{})} }

// hasten lets a round wait for others no longer. The tail's lock is held.
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

// keep returns when a stream is on the disk up to a position; see natslink.OnDisk.
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
		if err != nil && (r.upTo >= pos || t.failed != nil || ctx.Err() != nil) { // else it was not about pos
			return err
		}
	}
	return nil
}

// all waits for a round that begins after the call.
func (t *tail) all(ctx context.Context, urgent bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.syncing; r != nil && r.began {
		if err := t.await(ctx, r); err != nil && (t.failed != nil || ctx.Err() != nil) { // else it was not about what came after
			return err
		}
	}
	return t.await(ctx, t.current(urgent))
}

// current is the round on its way, or a new one. The lock is held.
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

// closed is a round's end that has come.
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
	if t.written > r.upTo { // also where nobody waits for it
		t.current(false)
	}
}

// judge remembers that a sync has failed. The lock is held.
func (t *tail) judge(err error) error {
	if errors.Is(err, errUnsynced) {
		err = fmt.Errorf("%w: %w", ErrStorage, err)
		t.failed = err
	}
	return err
}

// settle syncs what is beside the newest block.
func (t *tail) settle() error {
	err := t.files.settle()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.judge(err)
}

// await gives the lock away until a round has ended, and gives its error, or the context's.
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

// settle has on the disk what the server has written besides records: what it remembers
// of streams and consumers, and blocks that it has rewritten.
func (d *disk) settle() error {
	var errs []error
	for _, t := range d.all() {
		errs = append(errs, t.settle())
	}
	return errors.Join(errs...)
}

// broken says why what is written cannot be kept; nil when it can.
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

// close gives the files back. Nothing is kept after it.
func (d *disk) close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	for _, t := range d.all() {
		t.files.close()
	}
}
