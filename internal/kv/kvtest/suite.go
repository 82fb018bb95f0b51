// Package kvtest is the contract of kv.Store as a test suite: every store runs it.
package kvtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
)

// Run checks a store against the contract; open returns a new one.
func Run(t *testing.T, open func(t *testing.T) kv.Store) {
	t.Helper()
	t.Run("an absent key is not found", func(t *testing.T) {
		_, err := open(t).Get(t.Context(), "a.b")
		require.ErrorIs(t, err, kv.ErrNotFound)
	})
	t.Run("what was put is there", func(t *testing.T) {
		s := open(t)
		rev, err := s.Put(t.Context(), "a.b", []byte("one"))
		require.NoError(t, err)
		e, err := s.Get(t.Context(), "a.b")
		require.NoError(t, err)
		require.Equal(t, kv.Entry{Key: "a.b", Value: []byte("one"), Revision: rev}, e)
	})
	t.Run("an update needs the revision it replaces", func(t *testing.T) { revisions(t, open(t)) })
	t.Run("a deletion needs the revision it deletes", func(t *testing.T) { deletions(t, open(t)) })
	t.Run("of eight writers one wins", func(t *testing.T) { race(t, open(t)) })
	t.Run("a watch sees what is there, then what comes", func(t *testing.T) { watch(t, open(t)) })
	t.Run("a list has the latest of each key", func(t *testing.T) { list(t, open(t)) })
	t.Run("keys are those with a value", func(t *testing.T) { keys(t, open(t)) })
}

func keys(t *testing.T, s kv.Store) {
	t.Helper()
	none, err := s.Keys(t.Context(), "a.")
	require.NoError(t, err)
	require.Empty(t, none)
	for _, key := range []string{"a.one", "a.two.more", "a.gone", "b.one"} {
		rev, err := s.Put(t.Context(), key, []byte("v"))
		require.NoError(t, err)
		if key == "a.gone" {
			require.NoError(t, s.Delete(t.Context(), key, rev))
		}
	}
	all, err := s.Keys(t.Context(), "a.")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"a.one", "a.two.more"}, all)
}

func revisions(t *testing.T, s kv.Store) {
	t.Helper()
	rev, err := s.Update(t.Context(), "k", []byte("one"), 0)
	require.NoError(t, err)
	_, err = s.Update(t.Context(), "k", []byte("two"), 0)
	require.ErrorIs(t, err, kv.ErrConflict, "it exists")
	next, err := s.Update(t.Context(), "k", []byte("two"), rev)
	require.NoError(t, err)
	require.Greater(t, next, rev)
	_, err = s.Update(t.Context(), "k", []byte("three"), rev)
	require.ErrorIs(t, err, kv.ErrConflict, "it was changed")
	e, err := s.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "two", string(e.Value))
}

func deletions(t *testing.T, s kv.Store) {
	t.Helper()
	require.ErrorIs(t, s.Delete(t.Context(), "a.k", 0), kv.ErrConflict, "there is none")
	first, err := s.Update(t.Context(), "a.k", []byte("one"), 0)
	require.NoError(t, err)
	rev, err := s.Update(t.Context(), "a.k", []byte("two"), first)
	require.NoError(t, err)
	require.ErrorIs(t, s.Delete(t.Context(), "a.k", 0), kv.ErrConflict)
	require.ErrorIs(t, s.Delete(t.Context(), "a.k", first), kv.ErrConflict, "it was changed")
	require.NoError(t, s.Delete(t.Context(), "a.k", rev))
	_, err = s.Get(t.Context(), "a.k")
	require.ErrorIs(t, err, kv.ErrNotFound)
	require.ErrorIs(t, s.Delete(t.Context(), "a.k", rev), kv.ErrConflict, "it is gone")
	entries, err := kv.List(t.Context(), s, "a.")
	require.NoError(t, err)
	require.Empty(t, entries)
	again, err := s.Update(t.Context(), "a.k", []byte("new"), 0)
	require.NoError(t, err, "a deleted key can be created again")
	require.Greater(t, again, rev)
}

func race(t *testing.T, s kv.Store) {
	t.Helper()
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if _, err := s.Update(t.Context(), "k", fmt.Append(nil, i), 0); err == nil {
				won.Add(1)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int32(1), won.Load())
}

// patience limits the wait for an expected event.
const patience = 10 * time.Second

func watch(t *testing.T, s kv.Store) {
	t.Helper()
	for _, k := range []string{"a.1", "a.2", "b.1"} {
		_, err := s.Put(t.Context(), k, []byte(k))
		require.NoError(t, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	seen, ready, done := make(chan kv.Entry, 16), make(chan struct{}), make(chan error, 1)
	go func() { done <- s.Watch(ctx, "a.", ready, func(e kv.Entry) { seen <- e }) }()
	defer func() {
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	}()
	select {
	case <-ready:
	case <-time.After(patience):
		t.Fatal("the present entries were not handed over")
	}
	require.Len(t, seen, 2)
	_, err := s.Put(t.Context(), "b.2", nil)
	require.NoError(t, err)
	_, err = s.Put(t.Context(), "a.3", []byte("new"))
	require.NoError(t, err)
	for range 3 {
		select {
		case e := <-seen:
			require.True(t, strings.HasPrefix(e.Key, "a."), e.Key)
		case <-time.After(patience):
			t.Fatal("a change was not seen")
		}
	}
}

func list(t *testing.T, s kv.Store) {
	t.Helper()
	none, err := kv.List(t.Context(), s, "a.")
	require.NoError(t, err)
	require.Empty(t, none)
	for _, w := range [][2]string{{"a.2", "two"}, {"a.1", "old"}, {"b.1", "other"}, {"a.1", "one"}, {"a.10", "ten"}} {
		_, err := s.Put(t.Context(), w[0], []byte(w[1]))
		require.NoError(t, err)
	}
	entries, err := kv.List(t.Context(), s, "a.")
	require.NoError(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Key+"="+string(e.Value))
	}
	require.Equal(t, []string{"a.1=one", "a.10=ten", "a.2=two"}, got)
}
