package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/gowebpki/jcs"

	"waybill.dev/waybill/protocol/wire"
)

// entry is a stored entry. Its hash covers exactly these members. It is stored in its
// canonical form, so the hash is over the stored bytes.
type entry struct {
	Action     string          `json:"action"`
	Actor      string          `json:"actor"`
	AtSequence int64           `json:"atSequence"`
	Details    json.RawMessage `json:"details"`
	OccurredAt string          `json:"occurredAt"`
	PrevHash   *string         `json:"prevHash"` // nil for the first entry
	Target     string          `json:"target"`
}

// hash returns the hash of a stored entry.
func hash(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// tip is the end of a chain. The zero value is an empty chain.
type tip struct {
	next int64  // the sequence of the next entry
	hash string // of the last entry
}

// link renders a draft as the next entry of a chain.
func (t tip) link(d draft) ([]byte, tip, error) {
	e := entry{
		Action: d.action, Actor: d.Actor, AtSequence: t.next, Details: d.Details,
		OccurredAt: wire.FormatTime(d.at), Target: d.Target,
	}
	if t.next > 0 {
		e.PrevHash = &t.hash
	}
	b, err := json.Marshal(e)
	if err != nil {
		return nil, t, fmt.Errorf("audit: render entry: %w", err)
	}
	if b, err = jcs.Transform(b); err != nil {
		return nil, t, fmt.Errorf("audit: canonical form of an entry: %w", err)
	}
	return b, tip{next: t.next + 1, hash: hash(b)}, nil
}

// parse reads a stored entry; ok is false if it is invalid.
func parse(line []byte) (e entry, ok bool) { return e, json.Unmarshal(line, &e) == nil }

// tipOf returns the end of the chain whose last message is m.
func tipOf(m *Message) (tip, error) {
	if m == nil {
		return tip{}, nil
	}
	last := m.Lines[len(m.Lines)-1]
	e, ok := parse(last)
	if !ok {
		return tip{}, fmt.Errorf("%w: the last entry cannot be read", ErrDamaged)
	}
	return tip{next: e.AtSequence + 1, hash: hash(last)}, nil
}
