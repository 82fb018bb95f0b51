package accept

import (
	"encoding/json"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/schema"
	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/wire"
)

// maxNullRounds limits how often nulls are dropped: a dropped member can reveal others, because
// validation reports a limited number of violations.
const maxNullRounds = 4

// dropNulls returns the payload without the members that are null where their schema does not allow
// null: strict modes of providers write absent members so. A null reasoning is dropped where that
// leaves the payload valid (OpenWOP envelope contract §5). A payload that is invalid for other
// reasons is returned unchanged, with its violations.
func dropNulls(payload []byte, validate func([]byte) []schema.Violation) (out []byte, wrong []schema.Violation) {
	wrong = validate(payload)
	out = payload
	for remaining, n := wrong, 0; len(remaining) > 0; n++ {
		paths := map[string]bool{}
		for _, v := range remaining {
			paths[v.InstancePath] = true
		}
		less, dropped := withoutNulls(out, "", func(path string) bool { return paths[path] })
		if !dropped || n == maxNullRounds {
			return payload, wrong
		}
		out = less
		remaining = validate(out)
	}
	if less, ok := withoutNulls(out, "", func(path string) bool { return path == "/reasoning" }); ok && len(validate(less)) == 0 {
		out = less
	}
	return out, nil
}

// withoutNulls drops null members of objects at the chosen paths, which are JSON pointers. All other
// bytes stay as they are.
func withoutNulls(doc []byte, at string, drop func(path string) bool) (out []byte, dropped bool) {
	switch strictjson.KindOf(doc) {
	case "an object":
		var members []byte
		ok := strictjson.Each(doc, func(name, value []byte) {
			path := at + "/" + escapePointer.Replace(string(name))
			if string(value) == "null" && drop(path) {
				dropped = true
				return
			}
			less, changed := withoutNulls(value, path, drop)
			dropped = dropped || changed
			if members != nil {
				members = append(members, ',')
			}
			members = append(append(wire.AppendString(members, string(name)), ':'), less...)
		})
		if !ok || !dropped {
			return doc, false
		}
		return append(append([]byte("{"), members...), '}'), true
	case "an array":
		var items []json.RawMessage
		if json.Unmarshal(doc, &items) != nil {
			return doc, false
		}
		for i, item := range items {
			less, changed := withoutNulls(item, at+"/"+strconv.Itoa(i), drop)
			items[i], dropped = less, dropped || changed
		}
		if !dropped {
			return doc, false
		}
		out = []byte("[")
		for i, item := range items {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, item...)
		}
		return append(out, ']'), true
	}
	return doc, false
}

// escapePointer escapes a member's name in a JSON pointer (RFC 6901).
var escapePointer = strings.NewReplacer("~", "~0", "/", "~1") //nolint:gochecknoglobals // a constant
