package jetstream

import (
	"context"
	"fmt"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/audit"
	"waybill.dev/waybill/internal/natslink"
)

// Scan reads the messages of a list; see audit.Store.
func (s *Store) Scan(ctx context.Context, l audit.List, from int64, each func(*audit.Message) bool) error {
	last, err := s.Last(ctx, l)
	if err != nil || last == nil {
		return err
	}
	start, err := s.findSequence(ctx, l, from, last)
	if err != nil || start == nil {
		return err
	}
	if !each(start) || start.Pos == last.Pos {
		return nil
	}
	return s.scanRange(ctx, l, start.Pos+1, last.Pos, each)
}

// findSequence finds the message with a sequence by binary search, since all tenants share
// the positions. It returns nil if the list ends before.
func (s *Store) findSequence(ctx context.Context, l audit.List, from int64, last *audit.Message) (*audit.Message, error) {
	if last.First+int64(len(last.Lines)) <= from {
		return nil, nil //nolint:nilnil // an empty list
	}
	found, low, high := last, uint64(1), last.Pos
	for low < high {
		middle := low + (high-low)/2
		if from == 0 {
			middle = low // the first message
		}
		m, err := s.next(ctx, l, middle)
		if err != nil {
			return nil, err
		}
		if m == nil || m.Pos > last.Pos { // damaged: the message existed before
			return nil, fmt.Errorf("%w: a message before position %d is gone", audit.ErrDamaged, last.Pos)
		}
		if m.First+int64(len(m.Lines)) > from {
			found, high = m, middle
			continue
		}
		low = m.Pos + 1
	}
	return found, nil
}

// scanRange reads the messages from pos to end.
func (s *Store) scanRange(ctx context.Context, l audit.List, pos, end uint64, each func(*audit.Message) bool) error {
	damaged := error(nil)
	err := natslink.Scan(ctx, s.js.Conn(), s.stream, subjectOf(l), pos, end, func(raw *js.RawStreamMsg) (bool, error) {
		var m *audit.Message
		if m, damaged = message(raw, nil); damaged != nil {
			return false, nil
		}
		return each(m), nil
	})
	if err != nil {
		return unavailable("scan", err)
	}
	return damaged
}
