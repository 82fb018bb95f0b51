package eventlog

import (
	"encoding/base64"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// encodeCursor makes the opaque text that continues a list behind a place.
func encodeCursor(p store.Place) string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.CreatedAt + " " + p.RunID))
}

// decodeCursor takes such a text apart; ok is false for any other text.
func decodeCursor(s string) (p store.Place, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return p, false
	}
	at, id, _ := strings.Cut(string(raw), " ")
	if _, err := time.Parse(wire.TimeLayout, at); err != nil || !subject.Token(id) {
		return p, false
	}
	return store.Place{CreatedAt: at, RunID: id}, true
}
