package audit

import (
	"context"
	"errors"
)

// Errors of a Store.
var (
	// ErrConflict says that somebody else appended first; nothing was stored.
	ErrConflict = errors.New("audit log: another writer was first")
	// ErrUnavailable says that the store could not be reached in time.
	ErrUnavailable = errors.New("audit log unavailable")
	// ErrDamaged says that what is stored is no audit log.
	ErrDamaged = errors.New("audit log damaged")
)

// Kind tells the two lists of a tenant apart.
type Kind string

// The lists of a tenant.
const (
	Entries     Kind = "entry"
	Checkpoints Kind = "checkpoint"
)

// List names one of a tenant's lists.
type List struct {
	Tenant string
	Kind   Kind
}

// Message is what one append stored.
type Message struct {
	// Pos is its position in the store, greater than those of earlier messages.
	Pos uint64
	// First is the sequence of its first line, as it was told.
	First int64
	// Lines is never empty.
	Lines [][]byte
}

// Store keeps lists of lines that only ever grow.
type Store interface {
	// Last returns a list's last message; nil if there is none. Errors:
	// ErrUnavailable, ErrDamaged.
	Last(ctx context.Context, l List) (*Message, error)
	// Append adds lines, durable when it returns, if the list's last message is at
	// position after; 0: if it is empty. It recognises its own earlier try. Errors:
	// ErrConflict, ErrUnavailable.
	Append(ctx context.Context, l List, first int64, lines [][]byte, after uint64) (uint64, error)
	// Scan hands over the messages of a list in order, up to what was its last when
	// the call began, beginning with the one that holds sequence from. It ends when
	// each returns false. Errors: ErrUnavailable, ErrDamaged.
	Scan(ctx context.Context, l List, from int64, each func(*Message) bool) error
	// Tenants tells how many messages of entries each tenant has.
	Tenants(ctx context.Context) (map[string]uint64, error)
}
