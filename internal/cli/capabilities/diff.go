package capabilities

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"waybill.dev/waybill/protocol/jsonpointer"
)

// difference is a path at which two discovery documents differ. An absent value is null.
type difference struct {
	Path string          `json:"path"`
	A    json.RawMessage `json:"a"`
	B    json.RawMessage `json:"b"`
}

// compare returns the differences of two documents, sorted by path. Families are members of
// the document's root (RFC 0073). A list of names is compared as a set.
func compare(a, b []byte) ([]difference, error) {
	left, err := flatten(a)
	if err != nil {
		return nil, err
	}
	right, err := flatten(b)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(left)
	maps.Copy(all, right)
	out := []difference{}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		if x, y := left[path], right[path]; string(x) != string(y) {
			out = append(out, difference{path, x, y})
		}
	}
	return out, nil
}

// flatten returns every value of a document by its path.
func flatten(doc []byte) (map[string]json.RawMessage, error) {
	var v map[string]any
	d := json.NewDecoder(strings.NewReader(string(doc)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("not a discovery document: %w", err)
	}
	out := map[string]json.RawMessage{}
	return out, walk(out, "", v)
}

func walk(out map[string]json.RawMessage, at string, v any) error {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 && at != "" {
			out[at] = json.RawMessage("{}")
		}
		for name, x := range v {
			if err := walk(out, at+"/"+jsonpointer.Escape(name), x); err != nil {
				return err
			}
		}
		return nil
	case []any:
		if len(v) == 0 {
			out[at] = json.RawMessage("[]")
		}
		for i, x := range v {
			name := strconv.Itoa(i)
			if text, ok := x.(string); ok {
				out[at+"/"+jsonpointer.Escape(text)] = json.RawMessage("true")
				continue
			}
			if err := walk(out, at+"/"+name, x); err != nil {
				return err
			}
		}
		return nil
	default:
		b, err := json.Marshal(v)
		out[at] = b
		return err
	}
}
