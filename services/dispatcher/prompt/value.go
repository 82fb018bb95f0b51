package prompt

import (
	"bytes"
	"encoding/json"

	"waybill.dev/waybill/protocol/wire"
)

func quoted(text string) json.RawMessage { return wire.AppendString(nil, text) }

// canonical renders a value so that equal values are equal texts: sorted members, no spaces,
// numbers unchanged.
func canonical(raw json.RawMessage) json.RawMessage {
	v, err := decode(raw)
	if err != nil {
		return raw
	}
	return encode(v)
}

func decode(raw json.RawMessage) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // decoded values always render
		panic("prompt: " + err.Error())
	}
	return bytes.TrimSpace(b.Bytes())
}

// shownText renders a value for a prompt: strings unquoted, other values as JSON.
func shownText(raw json.RawMessage) string {
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// mapStrings applies a function to every string of a value, including member names.
func mapStrings(raw json.RawMessage, f func(string) string) json.RawMessage {
	v, err := decode(raw)
	if err != nil { // unreachable for valid JSON
		return quoted(f(string(raw)))
	}
	return encode(mapValue(v, f))
}

func mapValue(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		for i := range v {
			v[i] = mapValue(v[i], f)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[f(name)] = mapValue(member, f)
		}
		return out
	}
	return v
}
