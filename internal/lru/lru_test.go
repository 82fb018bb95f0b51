package lru_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"waybill.dev/waybill/internal/lru"
)

func TestCache_DropsWhatWasNotUsedForLongest(t *testing.T) {
	t.Parallel()
	c := lru.New[string, int](3)
	c.Put("a", 1, 1)
	c.Put("b", 2, 1)
	c.Put("c", 3, 1)
	_, ok := c.Get("a")
	require.True(t, ok)
	c.Put("d", 4, 1)

	_, ok = c.Get("b")
	require.False(t, ok, "b was used longest ago")
	for key, want := range map[string]int{"a": 1, "c": 3, "d": 4} {
		got, ok := c.Get(key)
		require.True(t, ok, key)
		require.Equal(t, want, got)
	}
}

func TestCache_CountsCosts(t *testing.T) {
	t.Parallel()
	c := lru.New[string, int](10)
	c.Put("a", 1, 4)
	c.Put("b", 2, 4)
	c.Put("a", 3, 7)
	require.Equal(t, 7, c.Cost(), "a has grown, b had to go")
	require.Equal(t, 1, c.Len())
	got, ok := c.Get("a")
	require.True(t, ok)
	require.Equal(t, 3, got)

	c.Put("huge", 9, 1000)
	require.Equal(t, 1, c.Len(), "the newest stays, whatever it costs")
	c.Put("b", 2, 1)
	_, ok = c.Get("huge")
	require.False(t, ok)
	c.Delete("b")
	c.Delete("b")
	require.Zero(t, c.Cost())
	c.Put("b", 2, 1)
	c.Clear()
	require.Zero(t, c.Len()+c.Cost())
}

func TestCache_NeverExceedsItsBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bound := rapid.IntRange(1, 50).Draw(t, "bound")
		c := lru.New[int, int](bound)
		costs := map[int]int{}
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			key := rapid.IntRange(0, 9).Draw(t, "key")
			if rapid.Bool().Draw(t, "delete") {
				c.Delete(key)
				delete(costs, key)
				continue
			}
			costs[key] = rapid.IntRange(0, 20).Draw(t, "cost")
			c.Put(key, key, costs[key])
			if c.Len() > 1 && c.Cost() > bound {
				t.Fatalf("cost %d exceeds %d", c.Cost(), bound)
			}
			total := 0
			for k, cost := range costs {
				if _, ok := c.Get(k); ok {
					total += cost
				}
			}
			if total != c.Cost() {
				t.Fatalf("cost is %d, the values cost %d", c.Cost(), total)
			}
		}
	})
}
