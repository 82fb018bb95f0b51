package model

import "sync"

// maxCached limits the source text, in bytes, of the compiled values in one cache. A compiled value
// takes several times the size of its source.
const maxCached = 4 << 20

// cache keeps compiled values by key. Nodes use the same schemas repeatedly, and compiling one
// takes longer than validating an answer. It is safe for concurrent use.
type cache[K comparable, V any] struct {
	mu      sync.Mutex // guards all below
	entries map[K]V
	bytes   int
}

// getOrCompile returns the cached value, or compiles it outside the lock so that a large schema
// delays no other caller. compile also returns the size of its source text. Failures are not
// cached.
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

// put caches a value. A full cache is emptied first: compiling again is cheaper than unbounded
// memory.
func (c *cache[K, V]) put(key K, made V, size int) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.entries[key]; ok { // another caller was faster
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
