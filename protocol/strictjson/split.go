package strictjson

import "encoding/json"

// Split checks b as Check does and returns the members of an object; nil for another value. It
// reads b once; the values are slices of b, without surrounding space.
func Split(b []byte, l Limits) (map[string]json.RawMessage, error) {
	l = l.withDefaults()
	s := scanner{b: b, maxDepth: l.MaxDepth, top: map[string]json.RawMessage{}}
	if err := checked(&s, l); err != nil {
		return nil, err
	}
	s.i = 0
	if s.space(); s.peek() != '{' {
		return nil, nil
	}
	return s.top, nil
}
