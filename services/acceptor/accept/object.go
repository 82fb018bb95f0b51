package accept

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/wire"
)

// objectWriter writes a JSON object member by member. Unlike a marshalled map it keeps
// the order, and raw values keep their bytes. The zero value is ready to use.
type objectWriter struct{ buf []byte }

func (w *objectWriter) addName(name string) {
	if len(w.buf) == 0 {
		w.buf = append(w.buf, '{')
	} else {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(wire.AppendString(w.buf, name), ':')
}

func (w *objectWriter) addString(name, value string) {
	w.addName(name)
	w.buf = wire.AppendString(w.buf, value)
}

// addNonEmpty adds the member unless its value is empty.
func (w *objectWriter) addNonEmpty(name, value string) {
	if value != "" {
		w.addString(name, value)
	}
}

func (w *objectWriter) addRaw(name string, value json.RawMessage) {
	w.addName(name)
	w.buf = append(w.buf, value...)
}

func (w *objectWriter) close() []byte { return append(w.buf, '}') }
