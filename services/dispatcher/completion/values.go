package completion

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"waybill.dev/waybill/protocol/schema"
)

// maxValueBytes bounds the text of the output schemas that are remembered, compiled.
// A compiled schema takes some times its text.
const maxValueBytes = 4 << 20

// values remembers compiled output schemas: nodes ask for the same ones again and
// again, and compiling takes longer than judging an answer. It is safe for
// concurrent use.
type values struct {
	mu    sync.Mutex // guards all below
	known map[[sha256.Size]byte]value
	bytes int
}

// value is an output schema, and what events call it.
type value struct {
	schema *schema.Schema
	name   string
}

// of compiles a schema that is not known yet, beside the lock: a large one holds up
// nobody else.
func (m *values) of(source json.RawMessage) (value, error) {
	key := sha256.Sum256(source)
	m.mu.Lock()
	found, ok := m.known[key]
	m.mu.Unlock()
	if ok {
		return found, nil
	}
	s, err := schema.Compile("outputSchema", source)
	if err != nil {
		return value{}, err
	}
	v := value{schema: s, name: valueName(source)}
	m.remember(key, v, len(source))
	return v, nil
}

// remember forgets all others when there are too many: rather a second compilation
// than a growing host.
func (m *values) remember(key [sha256.Size]byte, v value, size int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.known[key]; ok { // somebody was faster
		return
	}
	if m.known == nil || m.bytes+size > maxValueBytes {
		m.known, m.bytes = map[[sha256.Size]byte]value{}, 0
	}
	m.known[key], m.bytes = v, m.bytes+size
}
