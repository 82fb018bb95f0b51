package wire

import (
	"encoding/json"
	"strconv"
)

// ObjectWriter writes a JSON object member by member. Unlike a marshalled map it keeps the order,
// and raw values keep their bytes. The zero value is ready to use.
type ObjectWriter struct{ buf []byte }

func (w *ObjectWriter) name(name string) {
	if len(w.buf) == 0 {
		w.buf = append(w.buf, '{')
	} else {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(AppendString(w.buf, name), ':')
}

// String adds a member.
func (w *ObjectWriter) String(name, value string) {
	w.name(name)
	w.buf = AppendString(w.buf, value)
}

// NonEmpty adds the member unless its value is empty.
func (w *ObjectWriter) NonEmpty(name, value string) {
	if value != "" {
		w.String(name, value)
	}
}

// Int adds a member.
func (w *ObjectWriter) Int(name string, value int) {
	w.name(name)
	w.buf = strconv.AppendInt(w.buf, int64(value), 10)
}

// Raw adds a member. Value is JSON.
func (w *ObjectWriter) Raw(name string, value json.RawMessage) {
	w.name(name)
	w.buf = append(w.buf, value...)
}

// Close ends the object, which has at least one member, and returns it.
func (w *ObjectWriter) Close() json.RawMessage { return append(w.buf, '}') }
