package eventlog

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// place is the cursor of a sorted list.
type place struct {
	Sort      store.Sort `json:"s"`
	Ascending bool       `json:"a,omitempty"`
	// Value is null in the part of the list without the value.
	Value     json.RawMessage `json:"v"`
	CreatedAt string          `json:"c"`
	RunID     string          `json:"r"`
}

// encodeCursor returns the opaque cursor of a position in a query's list.
func encodeCursor(q store.Query, p store.Place) string {
	text := []byte(p.CreatedAt + " " + p.RunID)
	if q.Sort != store.SortCreated || q.Ascending {
		value, err := json.Marshal(p.Value)
		if err == nil {
			text, err = json.Marshal(place{q.Sort, q.Ascending, value, p.CreatedAt, p.RunID})
		}
		if err != nil {
			return "" // texts and finite numbers always marshal
		}
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// decodeCursor parses a cursor of a list in the query's order; ok is false if it is invalid.
func decodeCursor(q store.Query, s string) (p store.Place, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return p, false
	}
	if q.Sort == store.SortCreated && !q.Ascending {
		p.CreatedAt, p.RunID, _ = strings.Cut(string(raw), " ")
		return p, valid(p)
	}
	var c place
	if json.Unmarshal(raw, &c) != nil || c.Sort != q.Sort || c.Ascending != q.Ascending {
		return p, false
	}
	p.CreatedAt, p.RunID = c.CreatedAt, c.RunID
	p.Value, ok = sortValue(q.Sort, c.Value)
	return p, ok && valid(p)
}

func valid(p store.Place) bool {
	_, err := time.Parse(wire.TimeLayout, p.CreatedAt)
	return err == nil && subject.Token(p.RunID)
}

// sortValue parses a value of the type that the order compares; nil for null.
func sortValue(sort store.Sort, raw json.RawMessage) (any, bool) {
	if string(raw) == "null" {
		return nil, true
	}
	switch sort {
	case store.SortCost:
		return parsed[float64](raw)
	case store.SortTokens, store.SortDuration:
		return parsed[int64](raw)
	case store.SortModel, store.SortNode, store.SortWaiting:
		return parsed[string](raw)
	default:
		return nil, false
	}
}

func parsed[T any](raw json.RawMessage) (any, bool) {
	var v T
	err := json.Unmarshal(raw, &v)
	return v, err == nil
}
