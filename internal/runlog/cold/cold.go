// Package cold keeps the frames of ended runs outside the run log.
//
//	Store    the port: one compressed object per run; package sqlite implements it
//	Log      a run log that reads sealed runs from a store, and all others from the log
//	Sealer   moves ended runs from the log to a store
//
// An object holds the frames of a run in blocks. A block starts with an index of its frames: kinds,
// event types, number of events, positions. Hashes are not stored: they follow from the content, and the
// hash of a block's last frame, which covers all frames before it, is compared with the one of the log.
//
// The steps of the move, and what a crash after each leaves, are in docs/adr/0051.
package cold

import (
	"context"
	"errors"
	"fmt"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// ErrNotFound means that a store has no object of the run.
var ErrNotFound = errors.New("run not in the cold store")

// ErrDeleted means that a store has deleted the object of the run. It is an ErrNotFound.
var ErrDeleted = fmt.Errorf("%w: it was deleted", ErrNotFound)

// ErrUnavailable means that a store cannot be reached or written at the moment.
var ErrUnavailable = errors.New("cold store unavailable")

// ErrLacking means that a store lacks runs, or writes, that it had. It is an ErrUnavailable, and ends when the
// store is restored.
var ErrLacking = fmt.Errorf("%w: stored runs are missing", ErrUnavailable)

// ErrDamaged means that a part of a store cannot be read, now or later. It is a frame.ErrDamaged.
var ErrDamaged = fmt.Errorf("%w: cold store damaged", frame.ErrDamaged)

// Object is a sealed run. It is immutable.
type Object struct {
	Run    subject.Run
	Blocks []Block
}

// Hash returns the hash of the run's last frame.
func (o *Object) Hash() string { return o.Blocks[len(o.Blocks)-1].Hash }

// Bytes returns the size of the object's blocks.
func (o *Object) Bytes() (n int64) {
	for _, b := range o.Blocks {
		n += int64(len(b.Data))
	}
	return n
}

// Ref names the object.
func (o *Object) Ref() Ref { return Ref{Run: o.Run, Hash: o.Hash()} }

// Block holds consecutive frames of a run.
type Block struct {
	// Next is the sequence of the event after the block.
	Next int
	// Pos and Hash are those of the block's last frame.
	Pos  uint64
	Hash string
	// Data is the compressed index and content; nil in an answer of Store.Blocks.
	Data []byte
}

// Store keeps objects. Every implementation runs the suite of package coldtest. Runs are named by tenant
// and id; a WorkflowID in a key is ignored. Every method may also return ErrDamaged.
type Store interface {
	Reader
	// Put stores objects together, in place of earlier ones of their runs, and marks them as pending.
	// They are durable when it returns. Objects of deleted runs are left out. Errors: ErrUnavailable.
	Put(ctx context.Context, objects ...*Object) error
	// Releasing notes that the frames of runs with pending objects of these hashes are about to be deleted
	// without overwriting. Others are left out. It is durable when it returns. Errors: ErrUnavailable.
	Releasing(ctx context.Context, objects ...Ref) error
	// Confirm ends the pending state of objects with these hashes, together. Others are left out. Errors:
	// ErrUnavailable.
	Confirm(ctx context.Context, objects ...Ref) error
	// Pending returns up to limit runs with pending objects after a cursor, in the order of Put, and the
	// cursor after them. The empty cursor is before the first one. Errors: ErrUnavailable.
	Pending(ctx context.Context, after Cursor, limit int) ([]subject.Run, Cursor, error)
	// Discard removes a pending object with this hash, whose run is not sealed. No such object is not an
	// error. Errors: ErrUnavailable.
	Discard(ctx context.Context, run subject.Run, hash string) error
	// Delete removes the object of an erased run for ever: a sealer that has read the run before cannot
	// store it again. Its bytes are overwritten as far as the store can, also those of discarded objects.
	// It may be repeated, and then overwrites what it could not before. Errors: ErrUnavailable, ErrDamaged
	// if the store keeps bytes that it cannot reach; it does not return the object any more.
	Delete(ctx context.Context, run subject.Run) error
	// Released reports whether the store has the object of a run that was confirmed as released, or is being
	// released. Errors:
	// ErrUnavailable, ErrDamaged.
	Released(ctx context.Context, run subject.Run) (bool, error)
	// Totals counts the objects. Errors: ErrUnavailable.
	Totals(ctx context.Context) (Totals, error)
}

// Cleaner is a store with contents in another place, from where it does not remove them at once.
type Cleaner interface {
	// Clean removes contents of no run there. Errors: ErrUnavailable.
	Clean(ctx context.Context) error
}

// Ref names an object by its run and the hash of the run's last frame.
type Ref struct {
	Run  subject.Run
	Hash string
	// Released is for Confirm: the run's frames were deleted without overwriting, maybe by an earlier
	// process.
	Released bool
}

// Cursor is a place in the order of pending objects. Only its store reads it.
type Cursor string

// Reader reads objects.
type Reader interface {
	// Blocks returns the run of an object, with its workflow, and its blocks without data, in order.
	// Errors: ErrNotFound, which is ErrDeleted after Delete, and ErrUnavailable.
	Blocks(ctx context.Context, run subject.Run) (subject.Run, []Block, error)
	// Data returns the data of a run's block. Errors: ErrNotFound, ErrUnavailable.
	Data(ctx context.Context, run subject.Run, block int) ([]byte, error)
}

// Totals counts objects.
type Totals struct {
	Runs int64
	// Pending is the part of Runs that is not confirmed.
	Pending int64
	// Bytes is the size of the objects, without what the store needs for itself.
	Bytes int64
}
