package strictjson

import "encoding/json"

// Split checks b as Check does and gives the members of the object it is, nil if
// it is another value. It reads b once; the values are parts of b, without the
// space around them.
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
