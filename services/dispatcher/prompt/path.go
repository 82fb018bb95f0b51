package prompt

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// wantPath describes the supported paths.
const wantPath = "want a path of names and indices, such as $.customer.name, items[0].id or $['first name']; filters and wildcards are not there"

// step matches the next part of a path: .name, [0], ['name'] or ["name"].
var step = regexp.MustCompile(`^(?:\.([^.\[\]'"*?@()\s]+)|\[(\d{1,9})\]|\['([^']*)'\]|\["([^"]*)"\])`)

// segment is a member name or an index.
type segment struct {
	name  string
	index int // -1: the segment is a name
}

// parsePath parses a path. $.a.b and a.b are equivalent; an empty path is the whole value.
func parsePath(path string) ([]segment, bool) {
	rest := strings.TrimPrefix(path, "$")
	if rest == path && rest != "" && rest[0] != '[' {
		rest = "." + rest
	}
	var out []segment
	for rest != "" {
		m := step.FindStringSubmatch(rest)
		if m == nil {
			return nil, false
		}
		s := segment{name: m[1] + m[3] + m[4], index: -1}
		if m[2] != "" {
			s.index, _ = strconv.Atoi(m[2]) // digits
		}
		out, rest = append(out, s), rest[len(m[0]):]
	}
	return out, true
}

// follow returns the value at a path; nil if there is none.
func follow(raw json.RawMessage, path []segment) json.RawMessage {
	for _, s := range path {
		if s.index >= 0 {
			var list []json.RawMessage
			if json.Unmarshal(raw, &list) != nil || s.index >= len(list) {
				return nil
			}
			raw = list[s.index]
			continue
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			return nil
		}
		raw = members[s.name]
	}
	return raw
}
