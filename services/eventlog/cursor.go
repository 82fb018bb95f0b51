package eventlog

import (
	"encoding/base64"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// encodeCursor returns the opaque cursor of a list position.
func encodeCursor(p store.Place) string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.CreatedAt + " " + p.RunID))
}

// decodeCursor parses a cursor; ok is false if it is invalid.
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
