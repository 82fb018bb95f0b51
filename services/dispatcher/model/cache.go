package model

import "sync"

// maxCached bounds the text of what one cache remembers, compiled. What is compiled
// takes some times its text.
const maxCached = 4 << 20

// cache remembers what was compiled: nodes ask for the same schemas again and again, and
// compiling takes longer than judging an answer. It is safe for concurrent use.
type cache[K comparable, V any] struct {
	mu      sync.Mutex // guards all below
	entries map[K]V
	bytes   int
}

// getOrCompile compiles what is not known yet, beside the lock: a large schema holds up nobody
// else. compile tells the size of its text; what it fails on takes no room.
func (c *cache[K, V]) getOrCompile(key K, compile func() (made V, size int, err error)) (V, error) {
	c.mu.Lock()
	found, ok := c.entries[key]
	c.mu.Unlock()
	if ok {
		return found, nil
	}
	made, size, err := compile()
	if err != nil {
		return made, err
	}
	return c.put(key, made, size), nil
}

// put forgets all others when there are too many: rather a second compilation
// than a growing host.
func (c *cache[K, V]) put(key K, made V, size int) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.entries[key]; ok { // somebody was faster
		return found
	}
	if size > maxCached {
		return made
	}
	if c.entries == nil || c.bytes+size > maxCached {
		c.entries, c.bytes = map[K]V{}, 0
	}
	c.entries[key], c.bytes = made, c.bytes+size
	return made
}
