// Package lru keeps what was used most recently, within a bound.
package lru

import "container/list"

// Cache maps keys to values. Each value has a cost; when the costs add up to
// more than the bound, the values that were not used for longest go. It is not
// safe for concurrent use.
type Cache[K comparable, V any] struct {
	bound int
	cost  int
	order *list.List // most recently used first
	byKey map[K]*list.Element
}

type entry[K comparable, V any] struct {
	key   K
	value V
	cost  int
}

// New makes a cache whose costs add up to bound at most.
func New[K comparable, V any](bound int) *Cache[K, V] {
	return &Cache[K, V]{bound: bound, order: list.New(), byKey: map[K]*list.Element{}}
}

// Get gives the value of a key and marks it as used.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	el, ok := c.byKey[key]
	if !ok {
		return value, false
	}
	c.order.MoveToFront(el)
	return el.Value.(*entry[K, V]).value, true
}

// Put stores a value, or changes it and its cost. A value that alone exceeds
// the bound stays until the next Put.
func (c *Cache[K, V]) Put(key K, value V, cost int) {
	if el, ok := c.byKey[key]; ok {
		e := el.Value.(*entry[K, V])
		c.cost += cost - e.cost
		e.value, e.cost = value, cost
		c.order.MoveToFront(el)
	} else {
		c.byKey[key] = c.order.PushFront(&entry[K, V]{key: key, value: value, cost: cost})
		c.cost += cost
	}
	for c.cost > c.bound && c.order.Len() > 1 {
		c.drop(c.order.Back())
	}
}

// Delete forgets a key.
func (c *Cache[K, V]) Delete(key K) {
	if el, ok := c.byKey[key]; ok {
		c.drop(el)
	}
}

func (c *Cache[K, V]) drop(el *list.Element) {
	e := c.order.Remove(el).(*entry[K, V])
	delete(c.byKey, e.key)
	c.cost -= e.cost
}

// Clear forgets everything.
func (c *Cache[K, V]) Clear() {
	c.order.Init()
	clear(c.byKey)
	c.cost = 0
}

// Len counts the values.
func (c *Cache[K, V]) Len() int { return c.order.Len() }

// Cost is what the costs add up to.
func (c *Cache[K, V]) Cost() int { return c.cost }
