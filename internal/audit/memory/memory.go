// Package memory is an audit store in memory for tests. Tests can change its entries.
package memory

import (
	"bytes"
	"context"
	"sync"

	"waybill.dev/waybill/internal/audit"
)

// Store is an audit.Store. It is safe for concurrent use.
type Store struct {
	mu    sync.Mutex // guards what follows
	pos   uint64
	lists map[audit.List][]*audit.Message
	// fail is the error of every call; nil means none.
	fail error
	// damaged is the index of the first unreadable message of a list.
	damaged map[audit.List]int
}

// New makes an empty store.
func New() *Store {
	return &Store{lists: map[audit.List][]*audit.Message{}, damaged: map[audit.List]int{}}
}

// Fail makes every call fail; nil ends that.
func (s *Store) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

// Last returns a list's last message; see audit.Store.
func (s *Store) Last(_ context.Context, l audit.List) (*audit.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last(l), s.fail
}

func (s *Store) last(l audit.List) *audit.Message {
	if list := s.lists[l]; len(list) > 0 {
		return list[len(list)-1]
	}
	return nil
}

// Append adds lines; see audit.Store.
func (s *Store) Append(_ context.Context, l audit.List, first int64, lines [][]byte, after uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return 0, s.fail
	}
	at := uint64(0)
	if m := s.last(l); m != nil {
		at = m.Pos
	}
	if at != after {
		return 0, audit.ErrConflict
	}
	s.pos++
	s.lists[l] = append(s.lists[l], &audit.Message{Pos: s.pos, First: first, Lines: lines})
	return s.pos, nil
}

// Scan reads messages; see audit.Store.
func (s *Store) Scan(_ context.Context, l audit.List, from int64, each func(*audit.Message) bool) error {
	s.mu.Lock()
	list, err := s.lists[l], s.fail
	bad, damaged := s.damaged[l]
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for i, m := range list {
		if damaged && i == bad {
			return audit.ErrDamaged
		}
		if m.First+int64(len(m.Lines)) > from && !each(m) {
			return nil
		}
	}
	return nil
}

// Tenants counts messages per tenant; see audit.Store.
func (s *Store) Tenants(context.Context) (map[string]uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]uint64{}
	for l, list := range s.lists {
		if l.Kind == audit.Entries {
			out[l.Tenant] = uint64(len(list))
		}
	}
	return out, s.fail
}

// Copy copies a tenant's log from another store.
func Copy(ctx context.Context, from audit.Store, tenant string) (*Store, error) {
	out := New()
	for _, kind := range []audit.Kind{audit.Entries, audit.Checkpoints} {
		l := audit.List{Tenant: tenant, Kind: kind}
		err := from.Scan(ctx, l, 0, func(m *audit.Message) bool {
			lines := make([][]byte, len(m.Lines))
			for i, line := range m.Lines {
				lines[i] = bytes.Clone(line)
			}
			out.lists[l] = append(out.lists[l], &audit.Message{Pos: m.Pos, First: m.First, Lines: lines})
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Misplace changes the sequence of the first line of a message.
func (s *Store) Misplace(l audit.List, n int, first int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists[l][n].First = first
}

// Damage makes a list unreadable from message n on.
func (s *Store) Damage(l audit.List, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.damaged[l] = n
}

// Tamper replaces each line of a list with the result of change; nil removes the line.
func (s *Store) Tamper(l audit.List, change func(n int, line []byte) []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	var kept []*audit.Message
	for _, m := range s.lists[l] {
		var lines [][]byte
		for _, line := range m.Lines {
			if changed := change(n, line); changed != nil {
				lines = append(lines, changed)
			}
			n++
		}
		if m.Lines = lines; len(lines) > 0 {
			kept = append(kept, m)
		}
	}
	s.lists[l] = kept
}
