// Package blobtest tests implementations of blob.Store.
package blobtest

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/blob"
)

// Run tests an implementation. open returns an empty store.
func Run(t *testing.T, open func(t *testing.T) blob.Store) {
	t.Helper()
	t.Run("gives back what was stored", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		for name, data := range map[string][]byte{
			"small":             []byte("x"),
			"empty":             {},
			"large":             bytes.Repeat([]byte("0123456789abcdef"), 1<<16),
			"acme/with a slash": {0, 0xff},
		} {
			want := blob.Blob{Data: data, Meta: map[string]string{"type": "image/png"}}
			require.NoError(t, s.Put(t.Context(), name, want))
			got, err := s.Get(t.Context(), name)
			require.NoError(t, err)
			require.Len(t, got.Data, len(want.Data))
			require.True(t, bytes.Equal(want.Data, got.Data))
			require.Equal(t, want.Meta, got.Meta)
		}
	})
	t.Run("knows nothing else", func(t *testing.T) {
		t.Parallel()
		_, err := open(t).Get(t.Context(), "ghost")
		require.ErrorIs(t, err, blob.ErrNotFound)
	})
	t.Run("stores once", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		require.NoError(t, s.Put(t.Context(), "a", blob.Blob{Data: []byte("first")}))
		require.NoError(t, s.Put(t.Context(), "a", blob.Blob{Data: []byte("second")}))
		got, err := s.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, "first", string(got.Data))
	})
	t.Run("erases", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		for _, name := range []string{"acme/a", "acme/b"} {
			require.NoError(t, s.Put(t.Context(), name, blob.Blob{Data: bytes.Repeat([]byte(name), 1<<16)}))
		}
		for range 2 { // a blob that is gone is not an error
			require.NoError(t, s.Erase(t.Context(), "acme/a"))
		}
		_, err := s.Get(t.Context(), "acme/a")
		require.ErrorIs(t, err, blob.ErrNotFound)
		got, err := s.Get(t.Context(), "acme/b")
		require.NoError(t, err)
		require.Len(t, got.Data, 6<<16)
		require.NoError(t, s.Put(t.Context(), "acme/a", blob.Blob{Data: []byte("again")}))
		got, err = s.Get(t.Context(), "acme/a")
		require.NoError(t, err)
		require.Equal(t, "again", string(got.Data))
	})
	t.Run("is for many at a time", func(t *testing.T) {
		t.Parallel()
		s := open(t)
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				name := fmt.Sprint(i % 16) // several store each of them at once, and read it
				if err := s.Put(t.Context(), name, blob.Blob{Data: []byte(name)}); err != nil {
					t.Error(err)
					return
				}
				got, err := s.Get(t.Context(), name)
				if err != nil || string(got.Data) != name {
					t.Errorf("%s: %q, %v", name, got.Data, err)
				}
			})
		}
		wg.Wait()
	})
}
