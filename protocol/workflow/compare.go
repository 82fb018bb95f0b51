package workflow

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"waybill.dev/waybill/protocol/jsonpointer"
)

// The operations of changes.
const (
	Added    = "add"
	Removed  = "remove"
	Replaced = "replace"
)

// Change is a difference of two definitions. Nodes, edges, triggers and variables are named by their id or
// name in its path.
type Change struct {
	Op   string          `json:"op"`
	Path string          `json:"path"`
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
}

// Compare lists the differences of two documents, by path.
func Compare(before, after json.RawMessage) []Change {
	var out []Change
	compareAt("", compact(before), compact(after), &out)
	return out
}

// compact returns a document without insignificant white space.
func compact(doc json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, doc) != nil {
		return doc
	}
	return b.Bytes()
}

func compareAt(path string, before, after json.RawMessage, out *[]Change) {
	a, isA := membersByName(before)
	b, isB := membersByName(after)
	switch {
	case bytes.Equal(before, after):
	case before == nil:
		*out = append(*out, Change{Op: Added, Path: path, New: after})
	case after == nil:
		*out = append(*out, Change{Op: Removed, Path: path, Old: before})
	case !isA || !isB:
		*out = append(*out, Change{Op: Replaced, Path: path, Old: before, New: after})
	default:
		names := slices.Collect(maps.Keys(a))
		for name := range b {
			if a[name] == nil {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			compareAt(path+"/"+jsonpointer.Escape(name), a[name], b[name], out)
		}
	}
}

// membersByName returns the members of an object, and the elements of a list by their id, name or index.
func membersByName(v json.RawMessage) (map[string]json.RawMessage, bool) {
	var object map[string]json.RawMessage
	if json.Unmarshal(v, &object) == nil {
		return object, object != nil
	}
	var list []json.RawMessage
	if json.Unmarshal(v, &list) != nil {
		return nil, false
	}
	object = make(map[string]json.RawMessage, len(list))
	for i, element := range list {
		var named struct{ ID, Name string }
		_ = json.Unmarshal(element, &named) // others are named by their index
		key := named.ID
		if key == "" {
			key = named.Name
		}
		if _, taken := object[key]; key == "" || taken {
			key = strconv.Itoa(i)
		}
		object[key] = element
	}
	return object, true
}
