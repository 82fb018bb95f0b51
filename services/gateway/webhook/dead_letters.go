package webhook

import (
	"context"
	"encoding/json"
	"fmt"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/wire"
)

// DeadLetter is an event that was given up. Its content stays in the run log.
type DeadLetter struct {
	RunID    string         `json:"runId"`
	Sequence int            `json:"sequence"`
	Type     wire.EventType `json:"type"`
	Attempts int            `json:"attempts"`
	Reason   string         `json:"reason"`
	At       string         `json:"at"`
}

// deadPrefix starts the keys of all dead letters.
const deadPrefix = "dead."

// deadLetters keeps events that were given up, as long as their bucket does.
type deadLetters struct{ kv kv.Store }

// newDeadLetters makes a store over a bucket.
func newDeadLetters(s kv.Store) *deadLetters { return &deadLetters{s} }

// sequenceDigits pads sequences so that keys sort by sequence.
const sequenceDigits = 10

// Put stores a dead letter. Storing it twice has no effect.
func (d *deadLetters) Put(ctx context.Context, id laneID, l DeadLetter) error {
	b, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write dead letter: %w", err)
	}
	_, err = d.kv.Put(ctx, deadKey(id, l.Sequence), b)
	return err
}

func deadKey(id laneID, sequence int) string {
	return fmt.Sprintf("%s%s.%s.%s.%0*d", deadPrefix, id.Tenant, id.Webhook, id.RunID, sequenceDigits, sequence)
}

// List returns the dead letters of a subscription, ordered by run and sequence.
func (d *deadLetters) List(ctx context.Context, tenant, webhook string) ([]DeadLetter, error) {
	found, err := kv.List(ctx, d.kv, deadPrefix+tenant+"."+webhook+".")
	if err != nil {
		return nil, err
	}
	out := make([]DeadLetter, len(found))
	for i, e := range found {
		if err := json.Unmarshal(e.Value, &out[i]); err != nil {
			return nil, fmt.Errorf("read %s: %w", e.Key, err)
		}
	}
	return out, nil
}
