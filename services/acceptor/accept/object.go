package accept

import (
	"encoding/json"

	"waybill.dev/waybill/protocol/wire"
)

// object writes a JSON object member by member. Unlike a marshalled map it keeps
// the order, and raw values keep their bytes. The zero value is ready.
type object struct{ b []byte }

func (o *object) name(name string) {
	if len(o.b) == 0 {
		o.b = append(o.b, '{')
	} else {
		o.b = append(o.b, ',')
	}
	o.b = append(wire.AppendString(o.b, name), ':')
}

func (o *object) text(name, value string) {
	o.name(name)
	o.b = wire.AppendString(o.b, value)
}

// optional writes the member unless it is empty.
func (o *object) optional(name, value string) {
	if value != "" {
		o.text(name, value)
	}
}

func (o *object) raw(name string, value json.RawMessage) {
	o.name(name)
	o.b = append(o.b, value...)
}

func (o *object) close() []byte { return append(o.b, '}') }
