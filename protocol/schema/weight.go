package schema

import "fmt"

// The weight of a document is the cost of compiling it: at most half a kilobyte and 2 µs per unit.
const (
	// maxWeight limits a document to about 16 MB and 50 ms, with a margin. The largest published
	// schemas
	// weigh 18,450.
	maxWeight = 22_000
	// schemaWeight is the weight of a subschema in addition to its value, valueWeight of any value,
	// itemWeight of a value in a plain list, because enums may be long.
	schemaWeight = 14
	valueWeight  = 2
	itemWeight   = 1
	// unitBytes is the bytes per unit. The path of a subschema is stored pointerCopies times, and
	// once more for each of its steps.
	unitBytes     = 512
	pointerCopies = 12
	// unitStates is the states of a pattern per unit.
	unitStates = 3
)

// scale weighs a document, position by position.
type scale struct {
	most     int
	weight   int
	patterns map[string]bool // each is compiled once
	leads    []pointing
	// resources are the schemas with an $id, by its last path element.
	resources map[string][]map[string]any
}

// position adds the weight of a position.
func (s *scale) position(p *position) {
	s.weight += schemaWeight + p.length*(pointerCopies+p.steps)/unitBytes
	s.lead(p)
}

// understood returns errors of a position that the meta-schema would not report, or not as clearly.
func (s *scale) understood(p *position) *Error {
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

// pattern adds the weight of a regular expression.
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

// valuesWeight returns the weight of all values of a document, including containers.
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
