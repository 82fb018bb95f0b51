package sample

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"waybill.dev/waybill/services/dispatcher/provider"
)

// strayed is an envelope of a kind that every host has.
const strayed = `{"type":"media.file","payload":{"base64":"RGVhciBjdXN0b21lcg==","bytes":13,"mimeType":"text/plain","name":"letter.txt"}}`

// corrected reports whether a request says that an answer was not accepted.
func corrected(req provider.Request) bool {
	const told = "was not accepted"
	return slices.ContainsFunc(req.Messages, func(m provider.Message) bool { return bytes.Contains(m.Content, []byte(told)) })
}

// stumble leaves the last member, by name, out of an object. Whatever else is left as it
// is.
func stumble(text string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &members) != nil || len(members) == 0 {
		return text
	}
	delete(members, slices.Max(slices.Collect(maps.Keys(members))))
	out, err := json.Marshal(members)
	if err != nil {
		return text
	}
	return string(out)
}
