// Package memory keeps an audit log in memory: a real, small store for tests. It is the
// one store whose entries a test can change.
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
	// fail, when set, is what every call returns.
	fail error
	// damaged is the first message of a list that cannot be read.
	damaged map[audit.List]int
}

// New makes an empty store.
func New() *Store {
	return &Store{lists: map[audit.List][]*audit.Message{}, damaged: map[audit.List]int{}}
}

// Fail makes every call fail; nil: no longer.
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

// Scan hands over messages; see audit.Store.
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

// Tenants tells who has entries; see audit.Store.
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

// Copy reads all of a tenant's log out of another store.
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

// Misplace has a message of a list tell another sequence of its first line.
func (s *Store) Misplace(l audit.List, n int, first int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists[l][n].First = first
}

// Damage makes a list unreadable from a message on.
func (s *Store) Damage(l audit.List, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.damaged[l] = n
}

// Tamper hands each line of a list to change, and keeps what it returns; nil removes
// the line.
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
