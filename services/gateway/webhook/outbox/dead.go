package outbox

import (
	"context"
	"encoding/json"
	"fmt"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/protocol/wire"
)

// Letter is an event that was given up. Its content stays in the run log.
type Letter struct {
	RunID    string         `json:"runId"`
	Sequence int            `json:"sequence"`
	Type     wire.EventType `json:"type"`
	Attempts int            `json:"attempts"`
	Reason   string         `json:"reason"`
	At       string         `json:"at"`
}

// deadPrefix begins the keys of all dead letters.
const deadPrefix = "dead."

// Dead keeps what was given up, for as long as its bucket does.
type Dead struct{ kv kv.Store }

// NewDead keeps them in a bucket.
func NewDead(s kv.Store) *Dead { return &Dead{s} }

// sequenceDigits makes keys sort as sequences do.
const sequenceDigits = 10

// Put notes a letter; the same one twice is there once.
func (d *Dead) Put(ctx context.Context, id ID, l Letter) error {
	b, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write dead letter: %w", err)
	}
	_, err = d.kv.Put(ctx, fmt.Sprintf("%s%s.%s.%s.%0*d", deadPrefix, id.Tenant, id.Webhook, id.RunID, sequenceDigits, l.Sequence), b)
	return err
}

// List gives the letters of a subscription by run and sequence.
func (d *Dead) List(ctx context.Context, tenant, webhook string) ([]Letter, error) {
	found, err := kv.List(ctx, d.kv, deadPrefix+tenant+"."+webhook+".")
	if err != nil {
		return nil, err
	}
	out := make([]Letter, len(found))
	for i, e := range found {
		if err := json.Unmarshal(e.Value, &out[i]); err != nil {
			return nil, fmt.Errorf("read %s: %w", e.Key, err)
		}
	}
	return out, nil
}
