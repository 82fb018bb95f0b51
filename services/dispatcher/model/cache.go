package model

import "sync"

// maxCached bounds the text of what one cache remembers, compiled. What is compiled
// takes some times its text.
const maxCached = 4 << 20

// cache remembers what was compiled: nodes ask for the same schemas again and again, and
// compiling takes longer than judging an answer. It is safe for concurrent use.
type cache[K comparable, V any] struct {
	mu    sync.Mutex // guards all below
	known map[K]V
	bytes int
}

// of compiles what is not known yet, beside the lock: a large schema holds up nobody
// else. compile tells the size of its text; what it fails on takes no room.
func (m *cache[K, V]) of(key K, compile func() (made V, size int, err error)) (V, error) {
	m.mu.Lock()
	found, ok := m.known[key]
	m.mu.Unlock()
	if ok {
		return found, nil
	}
	made, size, err := compile()
	if err != nil {
		return made, err
	}
	return m.remember(key, made, size), nil
}

// remember forgets all others when there are too many: rather a second compilation
// than a growing host.
func (m *cache[K, V]) remember(key K, made V, size int) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found, ok := m.known[key]; ok { // somebody was faster
		return found
	}
	if size > maxCached {
		return made
	}
	if m.known == nil || m.bytes+size > maxCached {
		m.known, m.bytes = map[K]V{}, 0
	}
	m.known[key], m.bytes = made, m.bytes+size
	return made
}
