package audit

import (
	"context"
	"errors"
)

// Errors of a Store.
var (
	// ErrConflict reports that another writer appended first; nothing was stored.
	ErrConflict = errors.New("audit log: another writer was first")
	// ErrUnavailable reports that the store did not respond in time.
	ErrUnavailable = errors.New("audit log unavailable")
	// ErrDamaged reports that the stored data is not an audit log.
	ErrDamaged = errors.New("audit log damaged")
)

// Kind distinguishes the two lists of a tenant.
type Kind string

// The lists of a tenant.
const (
	Entries     Kind = "entry"
	Checkpoints Kind = "checkpoint"
)

// List identifies a list of a tenant.
type List struct {
	Tenant string
	Kind   Kind
}

// Message is the result of one append.
type Message struct {
	// Pos is its position in the store, greater than those of earlier messages.
	Pos uint64
	// First is the sequence of its first line, as passed to Append.
	First int64
	// Lines is never empty.
	Lines [][]byte
}

// Store stores append-only lists of lines.
type Store interface {
	// Last returns a list's last message; nil if there is none. Errors:
	// ErrUnavailable, ErrDamaged.
	Last(ctx context.Context, l List) (*Message, error)
	// Append adds lines if the list's last message is at position after, or with 0 if the
	// list is empty. The lines are durable when it returns. It recognises its own earlier
	// attempt. Errors:
	// ErrConflict, ErrUnavailable.
	Append(ctx context.Context, l List, first int64, lines [][]byte, after uint64) (uint64, error)
	// Scan calls each for the messages of a list in order: from the message with sequence
	// from to the last message at the time of the call. It stops when each returns false.
	// Errors: ErrUnavailable, ErrDamaged.
	Scan(ctx context.Context, l List, from int64, each func(*Message) bool) error
	// Tenants returns the number of messages with entries of each tenant.
	Tenants(ctx context.Context) (map[string]uint64, error)
}
