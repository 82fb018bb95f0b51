package schema

import (
	"fmt"
	"strings"
)

// The weight of a document is what it takes to compile it: half a kilobyte and 2 µs or
// less for each unit.
const (
	// maxWeight bounds a document: 16 MB and 50 ms, with room to spare. The largest
	// published schemas weigh 18,450.
	maxWeight = 22_000
	// schemaWeight is that of a subschema besides its value, valueWeight of any value,
	// itemWeight of one in a plain list: an enum may be long.
	schemaWeight = 14
	valueWeight  = 2
	itemWeight   = 1
	// unitBytes is what a unit stands for. The place of a subschema is written some
	// pointerCopies times, and once more for each step of it.
	unitBytes     = 512
	pointerCopies = 12
	// unitStates is how many states of a pattern are a unit.
	unitStates = 3
)

// scale weighs a document, position by position.
type scale struct {
	most     int
	weight   int
	patterns map[string]bool // each is compiled once
	leads    []pointing
	// resources are those with an $id, by the last step of it.
	resources map[string][]map[string]any
}

// position adds what stands at a position.
func (s *scale) position(p *position) {
	s.weight += schemaWeight + p.length*(pointerCopies+p.steps)/unitBytes
	s.lead(p)
}

// understood says what is wrong with a position that the dialect's own schema would
// not say, or not as well.
func (s *scale) understood(p *position) *Error {
	if d, ok := p.object["$schema"].(string); ok && strings.TrimSuffix(d, "#") != dialect {
		return &Error{Path: p.pointer("$schema"), Reason: "only the dialect " + dialect + " is understood"}
	}
	if text, ok := p.object["pattern"].(string); ok {
		if err := s.pattern(text); err != nil {
			return &Error{Path: p.pointer("pattern"), Reason: notTaken + err.Error()}
		}
	}
	named, _ := p.object["patternProperties"].(map[string]any)
	for _, text := range sortedKeys(named) {
		if err := s.pattern(text); err != nil {
			return &Error{Path: p.pointer("patternProperties", text), Reason: notTaken + err.Error()}
		}
	}
	return nil
}

const notTaken = "not a JSON Schema that is taken here: "

// pattern adds a regular expression.
func (s *scale) pattern(text string) error {
	if s.patterns[text] {
		return nil
	}
	s.patterns[text] = true
	m, err := measure(text)
	if s.weight += m.size / unitStates; err == nil && s.weight > s.most {
		err = fmt.Errorf("with this pattern the document has too many states; repeat less, or use fewer")
	}
	return err
}

// valuesWeight is that of all values of a document, containers included.
func valuesWeight(v any) int {
	n := valueWeight
	switch v := v.(type) {
	case map[string]any:
		for _, item := range v {
			n += valuesWeight(item)
		}
	case []any:
		for _, item := range v {
			switch item.(type) {
			case map[string]any, []any:
				n += valuesWeight(item)
			default:
				n += itemWeight
			}
		}
	}
	return n
}
