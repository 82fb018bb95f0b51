// Package coldtest is the contract of the cold store as tests. Every implementation of cold.Store runs
// the same suite.
package coldtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/protocol/subject"
)

// Run checks the store that open returns. Each test opens its own empty store; open registers the
// cleanup.
func Run(t *testing.T, open func(t *testing.T) cold.Store) {
	for _, tt := range []struct {
		name  string
		check func(t *testing.T, s cold.Store)
	}{
		{"gives back what was put", givesBack},
		{"keeps tenants apart", keepsTenantsApart},
		{"replaces an object", replaces},
		{"lists pending objects until they are confirmed", listsPending},
		{"discards a pending object with its hash", discards},
		{"deletes for ever", deletes},
		{"knows released runs", knowsReleased},
		{"counts objects", counts},
		{"serves readers and writers at the same time", servesMany},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.check(t, open(t))
		})
	}
}

// Object is an object with blocks of given sizes.
func Object(tenant, runID string, sizes ...int) *cold.Object {
	o := &cold.Object{Run: subject.Run{Tenant: tenant, WorkflowID: "flow", RunID: runID}}
	for i, n := range sizes {
		data := bytes.Repeat([]byte{byte(i + 1)}, n)
		sum := sha256.Sum256(fmt.Appendf(data, "%s/%d/%d", runID, i, n))
		o.Blocks = append(o.Blocks, cold.Block{
			Next: 10 * (i + 1), Pos: uint64(100*i + 7), Hash: hex.EncodeToString(sum[:]), Data: data, //nolint:gosec // G115: small
		})
	}
	return o
}

func same(t *testing.T, s cold.Store, want *cold.Object) {
	t.Helper()
	run, blocks, err := s.Blocks(t.Context(), subject.Run{Tenant: want.Run.Tenant, RunID: want.Run.RunID})
	require.NoError(t, err)
	require.Equal(t, want.Run, run)
	require.Len(t, blocks, len(want.Blocks))
	for i, b := range blocks {
		require.Nil(t, b.Data)
		b.Data, err = s.Data(t.Context(), want.Run, i)
		require.NoError(t, err)
		require.Equal(t, want.Blocks[i], b)
	}
}

func none(t *testing.T, s cold.Store, run subject.Run) {
	t.Helper()
	_, _, err := s.Blocks(t.Context(), run)
	require.ErrorIs(t, err, cold.ErrNotFound)
	_, err = s.Data(t.Context(), run, 0)
	require.ErrorIs(t, err, cold.ErrNotFound)
}

func pendingIDs(t *testing.T, s cold.Store, limit int) (ids []string) {
	t.Helper()
	runs, _, err := s.Pending(t.Context(), "", limit)
	require.NoError(t, err)
	for n, cursor := 0, cold.Cursor(""); n < len(runs); n++ { // one by one they are the same
		page, next, err := s.Pending(t.Context(), cursor, 1)
		require.NoError(t, err)
		require.Equal(t, runs[n:n+1], page)
		cursor = next
	}
	for _, r := range runs {
		require.Equal(t, "flow", r.WorkflowID)
		ids = append(ids, r.RunID)
	}
	return ids
}

func givesBack(t *testing.T, s cold.Store) {
	a, b := Object("acme", "a", 10), Object("acme", "b", 1, 200_000, 3)
	require.NoError(t, s.Put(t.Context(), a, b))
	same(t, s, a)
	same(t, s, b)
	none(t, s, subject.Run{Tenant: "acme", RunID: "ghost"})
	_, _, err := s.Blocks(t.Context(), subject.Run{Tenant: "acme", RunID: "ghost"})
	require.NotErrorIs(t, err, cold.ErrDeleted)
	_, err = s.Data(t.Context(), a.Run, 1)
	require.ErrorIs(t, err, cold.ErrNotFound)
}

func keepsTenantsApart(t *testing.T, s cold.Store) {
	ours, theirs := Object("acme", "r", 10), Object("beta", "r", 20)
	require.NoError(t, s.Put(t.Context(), ours, theirs))
	require.NoError(t, s.Delete(t.Context(), ours.Run))
	none(t, s, ours.Run)
	same(t, s, theirs)
}

func replaces(t *testing.T, s cold.Store) {
	first, second := Object("acme", "r", 10, 20, 30), Object("acme", "r", 5)
	for _, o := range []*cold.Object{first, second, second} {
		require.NoError(t, s.Put(t.Context(), o))
		require.NoError(t, s.Confirm(t.Context(), cold.Ref{Run: o.Run, Hash: o.Hash()}))
		same(t, s, o)
	}
	require.NoError(t, s.Put(t.Context(), second))
	require.Equal(t, []string{"r"}, pendingIDs(t, s, 10), "it is pending again")
}

func listsPending(t *testing.T, s cold.Store) {
	a, b, c := Object("acme", "a", 1), Object("acme", "b", 2), Object("acme", "c", 3)
	require.NoError(t, s.Put(t.Context(), b, a))
	require.NoError(t, s.Put(t.Context(), c))
	require.Equal(t, []string{"b", "a", "c"}, pendingIDs(t, s, 10))
	require.Equal(t, []string{"b", "a"}, pendingIDs(t, s, 2))
	require.NoError(t, s.Confirm(t.Context(), cold.Ref{Run: b.Run, Hash: a.Hash()}))
	require.Equal(t, []string{"b", "a", "c"}, pendingIDs(t, s, 10), "another hash confirms nothing")
	for range 2 {
		require.NoError(t, s.Confirm(t.Context(), cold.Ref{Run: b.Run, Hash: b.Hash()}))
	}
	require.NoError(t, s.Confirm(t.Context(), cold.Ref{Run: subject.Run{Tenant: "acme", RunID: "ghost"}, Hash: b.Hash()}))
	require.Equal(t, []string{"a", "c"}, pendingIDs(t, s, 10))
	same(t, s, b)
}

func discards(t *testing.T, s cold.Store) {
	o := Object("acme", "r", 10)
	require.NoError(t, s.Put(t.Context(), o))
	require.NoError(t, s.Discard(t.Context(), o.Run, Object("acme", "x", 1).Hash()))
	same(t, s, o)
	for range 2 {
		require.NoError(t, s.Discard(t.Context(), o.Run, o.Hash()))
		none(t, s, o.Run)
	}
	require.NoError(t, s.Put(t.Context(), o), "the run may be sealed later")
	require.NoError(t, s.Confirm(t.Context(), cold.Ref{Run: o.Run, Hash: o.Hash()}))
	require.NoError(t, s.Discard(t.Context(), o.Run, o.Hash()))
	same(t, s, o)
}

func deletes(t *testing.T, s cold.Store) {
	o, other := Object("acme", "r", 10), Object("acme", "other", 10)
	require.NoError(t, s.Put(t.Context(), o, other))
	for range 2 {
		require.NoError(t, s.Delete(t.Context(), o.Run))
		none(t, s, o.Run)
		_, _, err := s.Blocks(t.Context(), o.Run)
		require.ErrorIs(t, err, cold.ErrDeleted)
	}
	require.NoError(t, s.Put(t.Context(), o))
	none(t, s, o.Run)
	require.NoError(t, s.Confirm(t.Context(), cold.Ref{Run: o.Run, Hash: o.Hash()}))
	require.NoError(t, s.Discard(t.Context(), o.Run, o.Hash()))
	require.NoError(t, s.Put(t.Context(), o))
	none(t, s, o.Run)
	require.Equal(t, []string{"other"}, pendingIDs(t, s, 10))
	unknown := Object("acme", "later", 1)
	require.NoError(t, s.Delete(t.Context(), unknown.Run))
	require.NoError(t, s.Put(t.Context(), unknown))
	none(t, s, unknown.Run)
	same(t, s, other)
}

func counts(t *testing.T, s cold.Store) {
	check := func(runs, pending, size int64) {
		t.Helper()
		got, err := s.Totals(t.Context())
		require.NoError(t, err)
		require.Equal(t, cold.Totals{Runs: runs, Pending: pending, Bytes: size}, got)
	}
	check(0, 0, 0)
	a, b := Object("acme", "a", 10, 20), Object("acme", "b", 5)
	require.NoError(t, s.Put(t.Context(), a, b))
	check(2, 2, 35)
	require.NoError(t, s.Put(t.Context(), b))
	check(2, 2, 35)
	require.NoError(t, s.Confirm(t.Context(), cold.Ref{Run: a.Run, Hash: a.Hash()}))
	check(2, 1, 35)
	require.NoError(t, s.Delete(t.Context(), a.Run))
	check(1, 1, 5)
	require.NoError(t, s.Delete(t.Context(), a.Run))
	require.NoError(t, s.Discard(t.Context(), b.Run, b.Hash()))
	check(0, 0, 0)
}

func servesMany(t *testing.T, s cold.Store) {
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 10 {
				o := Object("acme", fmt.Sprintf("r-%d-%d", w, i), 1000, 2000)
				if err := s.Put(t.Context(), o); err != nil {
					t.Error(err)
				}
				if err := s.Confirm(t.Context(), cold.Ref{Run: o.Run, Hash: o.Hash()}); err != nil {
					t.Error(err)
				}
				if data, err := s.Data(t.Context(), o.Run, 1); err != nil || !bytes.Equal(data, o.Blocks[1].Data) {
					t.Errorf("%s: %v", o.Run.RunID, err)
				}
				if i%3 == 0 {
					if err := s.Delete(t.Context(), o.Run); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	got, err := s.Totals(t.Context())
	require.NoError(t, err)
	require.Equal(t, cold.Totals{Runs: 24, Bytes: 24 * 3000}, got)
	require.Empty(t, pendingIDs(t, s, 100))
}

func knowsReleased(t *testing.T, s cold.Store) {
	is := func(want bool, run subject.Run) {
		t.Helper()
		got, err := s.Released(t.Context(), run)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	a, b := Object("acme", "a", 10), Object("acme", "b", 10)
	require.NoError(t, s.Put(t.Context(), a, b))
	is(false, a.Run)
	c := Object("acme", "c", 10)
	require.NoError(t, s.Put(t.Context(), c))
	require.NoError(t, s.Releasing(t.Context(), cold.Ref{Run: c.Run, Hash: a.Hash()}))
	is(false, c.Run)
	require.NoError(t, s.Releasing(t.Context(), cold.Ref{Run: c.Run, Hash: c.Hash()}))
	is(true, c.Run)
	require.Contains(t, pendingIDs(t, s, 10), "c")
	require.NoError(t, s.Delete(t.Context(), c.Run))
	is(false, c.Run)
	require.NoError(t, s.Confirm(t.Context(), cold.Ref{Run: a.Run, Hash: a.Hash(), Released: true}, cold.Ref{Run: b.Run, Hash: b.Hash()}))
	is(true, a.Run)
	is(false, b.Run)
	is(false, subject.Run{Tenant: "beta", RunID: "a"})
	same(t, s, a)
	require.NoError(t, s.Delete(t.Context(), a.Run))
	is(false, a.Run)
}
