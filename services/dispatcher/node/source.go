package node

import "sync/atomic"

// Source gives the current node types. A Catalog is a Source that never changes.
type Source interface {
	// Current returns the types. The caller must not change them.
	Current() Catalog
}

// Current returns the catalog.
func (c Catalog) Current() Catalog { return c }

// Live is a Source that can be replaced while runs execute.
type Live struct{ types atomic.Pointer[Catalog] }

// Current returns the types that were set last; nil before.
func (l *Live) Current() Catalog {
	if c := l.types.Load(); c != nil {
		return *c
	}
	return nil
}

// Set replaces the types.
func (l *Live) Set(c Catalog) { l.types.Store(&c) }

// CurrentOf returns the types of a source; nil for nil.
func CurrentOf(s Source) Catalog {
	if s == nil {
		return nil
	}
	return s.Current()
}
