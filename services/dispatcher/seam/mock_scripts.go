package seam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/epoch"
	"waybill.dev/waybill/services/dispatcher/provider/mock"
)

// Scripts implements mock.Scripts over records that all processes share: whichever process makes the
// call finds the script, whichever process received it (OpenWOP envelope contract §23, distribution). It is
// safe for concurrent use.
//
// Entries are answers of a model and can contain secrets planted by tests. The records should be in memory, so
// that no script is ever on disk.
type Scripts struct{ records kv.Store }

// NewScripts keeps scripts in records.
func NewScripts(records kv.Store) *Scripts { return &Scripts{records: records} }

func (s *Scripts) space(tenant string) epoch.Space { return epoch.New(s.records, "script", tenant) }

// queue returns the key of a node's entries, budget the key of its latest budget.
func queue(nodeID string) string  { return "queue." + epoch.Token(nodeID) }
func budget(nodeID string) string { return "budget." + epoch.Token(nodeID) }

// maxScript limits the entries of one node, in bytes.
const maxScript = 3 << 20

// ErrTooLarge means that a script has too many or too long entries.
var ErrTooLarge = errors.New("script too large")

// Program replaces a queue. Errors: ErrTooLarge, kv.ErrUnavailable.
func (s *Scripts) Program(ctx context.Context, tenant, nodeID string, entries []mock.Entry) error {
	value, err := json.Marshal(entries)
	if err != nil {
		return fmt.Errorf("render script: %w", err)
	}
	if len(value) > maxScript {
		return fmt.Errorf("%w: %d bytes; at most %d are taken", ErrTooLarge, len(value), maxScript)
	}
	now, err := s.space(tenant).Now(ctx)
	if err != nil {
		return err
	}
	return now.Put(ctx, queue(nodeID), value)
}

// errNone aborts a change of an empty queue.
var errNone = errors.New("no entry left")

// Take removes the next entry. Concurrent callers get different entries.
func (s *Scripts) Take(ctx context.Context, tenant, nodeID string, tokens int) (mock.Entry, error) {
	var next mock.Entry
	now, err := s.space(tenant).Now(ctx)
	if err != nil {
		return next, err
	}
	if err := now.Put(ctx, budget(nodeID), strconv.AppendInt(nil, int64(tokens), 10)); err != nil {
		return next, err
	}
	err = now.Change(ctx, queue(nodeID), func(value []byte) ([]byte, error) {
		var entries []mock.Entry
		if value != nil {
			if err := json.Unmarshal(value, &entries); err != nil {
				return nil, fmt.Errorf("read script: %w", err)
			}
		}
		if len(entries) == 0 {
			return nil, errNone
		}
		next = entries[0]
		return json.Marshal(entries[1:])
	})
	if errors.Is(err, errNone) {
		return mock.Entry{}, nil
	}
	return next, err
}

// LastBudget returns the budget of a node's latest call.
func (s *Scripts) LastBudget(ctx context.Context, tenant, nodeID string) (tokens int, ok bool, err error) {
	now, err := s.space(tenant).Now(ctx)
	if err != nil {
		return 0, false, err
	}
	value, _, err := now.Get(ctx, budget(nodeID))
	if err != nil || value == nil {
		return 0, false, err
	}
	tokens, err = strconv.Atoi(string(value))
	return tokens, err == nil, err
}

// Reset drops all scripts and budgets of a tenant.
func (s *Scripts) Reset(ctx context.Context, tenant string) (int, error) {
	now, err := s.space(tenant).Now(ctx)
	if err != nil {
		return 0, err
	}
	queues, err := now.List(ctx, "queue.")
	if err != nil {
		return 0, err
	}
	return len(queues), s.space(tenant).Clear(ctx)
}
