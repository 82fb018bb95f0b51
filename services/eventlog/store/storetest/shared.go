package storetest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
)

// RunShared checks a store that several writers fill concurrently, as the replicas of a host do.
// Each test opens its own empty storage; the result of open opens one more store over it.
func RunShared(t *testing.T, open func(t *testing.T) func() store.Store) {
	tests := []struct {
		name  string
		check func(t *testing.T, another func() store.Store)
	}{
		{"a batch of another writer is applied already", otherHasApplied},
		{"a batch that goes further is taken", overlapIsTaken},
		{"a late batch takes nothing back", lateBatchChangesNothing},
		{"a writer learns that another has emptied", otherHasEmptied},
		{"of two writers that find damage one empties", oneEmpties},
		{"two writers of the same log are like one", writersRace},
		{"two writers count each frame once", writersCountOnce},
	}
	for _, tt := range tests {
		t.Run("shared/"+tt.name, func(t *testing.T) {
			t.Parallel()
			tt.check(t, open(t))
		})
	}
}

// pair opens two writers that have both read the tail.
func pair(t *testing.T, another func() store.Store) (a, b store.Store) {
	t.Helper()
	a, b = another(), another()
	for _, s := range []store.Store{a, b} {
		_, err := s.Tail(t.Context())
		require.NoError(t, err)
	}
	return a, b
}

func standsAt(t *testing.T, s store.Store, pos uint64) {
	t.Helper()
	tail, err := s.Tail(t.Context())
	require.NoError(t, err)
	require.Equal(t, pos, tail.Pos)
}

func otherHasApplied(t *testing.T, another func() store.Store) {
	a, b := pair(t, another)
	r := row("r1", 1)
	for _, s := range []store.Store{a, b, a} {
		apply(t, s, 12, []store.Run{r}, record(r), frameOf(r, 0, 3))
		standsAt(t, s, 12)
	}
	frames, err := b.Frames(t.Context(), r.Key, store.RecordFirst, 100)
	require.NoError(t, err)
	require.Len(t, frames, 2)
}

func overlapIsTaken(t *testing.T, another func() store.Store) {
	a, b := pair(t, another)
	r := row("r1", 1)
	apply(t, a, 12, []store.Run{r}, record(r), frameOf(r, 0, 3))
	r.Pos, r.Head, r.Status = 20, 5, wire.StatusCompleted // still new to b
	apply(t, b, 20, []store.Run{r}, record(r), frameOf(r, 0, 3), frameOf(r, 4, 5))
	standsAt(t, a, 20)
	runs, err := a.List(t.Context(), store.Query{Tenant: "acme", Tag: "a", Limit: 10})
	require.NoError(t, err)
	require.Equal(t, []store.Run{stored(r)}, runs)
	frames, err := a.Frames(t.Context(), r.Key, 0, 100)
	require.NoError(t, err)
	require.Equal(t, []int{0, 4}, firsts(frames))
}

func lateBatchChangesNothing(t *testing.T, another func() store.Store) {
	a, b := pair(t, another)
	newer, older := row("r1", 1), row("r1", 1)
	newer.Pos, newer.Status = 20, wire.StatusCompleted
	apply(t, a, 20, []store.Run{newer}, record(newer))
	apply(t, b, 12, []store.Run{older}, record(older))
	standsAt(t, b, 20)
	got, err := b.Run(t.Context(), newer.Key)
	require.NoError(t, err)
	require.Equal(t, stored(newer), got)
}

func otherHasEmptied(t *testing.T, another func() store.Store) {
	a, b := pair(t, another)
	r, later := row("r1", 1), row("r2", 2)
	apply(t, a, 12, []store.Run{r}, record(r))
	apply(t, b, 12, []store.Run{r}, record(r))
	require.NoError(t, a.Rebuild(t.Context()))
	standsAt(t, a, 0)

	// b would write from position 12 on, and the gap would never be filled.
	err := b.Apply(t.Context(), store.Batch{Runs: []store.Run{later}, Tail: store.Tail{Pos: 20, Hash: "tail-20"}})
	require.ErrorIs(t, err, store.ErrMoved)
	_, err = b.Tail(t.Context())
	require.ErrorIs(t, err, store.ErrMoved)
	_, err = b.Run(t.Context(), r.Key)
	require.ErrorIs(t, err, store.ErrMoved, "not: no such run")
	_, err = b.List(t.Context(), store.Query{Tenant: "acme", Limit: 10})
	require.ErrorIs(t, err, store.ErrMoved)

	apply(t, a, 11, []store.Run{r}, record(r))
	require.NoError(t, b.Rebuild(t.Context()))
	standsAt(t, b, 11)
	_, err = b.Run(t.Context(), r.Key)
	require.NoError(t, err)
	apply(t, b, 20, []store.Run{later}, record(later))
	standsAt(t, a, 20)
}

func oneEmpties(t *testing.T, another func() store.Store) {
	a, b := pair(t, another)
	r := row("r1", 1)
	apply(t, a, 12, []store.Run{r}, record(r))
	require.NoError(t, a.Rebuild(t.Context()))
	apply(t, a, 11, []store.Run{r}, record(r))
	require.NoError(t, b.Rebuild(t.Context()), "b has found the damage that a has seen to")
	standsAt(t, b, 11)
	require.NoError(t, b.Rebuild(t.Context()), "new damage")
	standsAt(t, b, 0)
}

// A log of runs that alternate, position by position, and what a store holds of it at any position.
const (
	logRuns  = 7
	logSteps = 9
	logEnd   = logRuns * logSteps
)

// at returns the run and the frame of a position.
func at(pos int) (store.Run, store.Frame) {
	n, step := (pos-1)%logRuns, (pos-1)/logRuns
	r := row(fmt.Sprintf("r%d", n), n)
	r.Pos, r.Head, r.Hash, r.New = uint64(pos), step-1, fmt.Sprint("h", pos), false //nolint:gosec // G115: a small number
	r.DueMs = int64(step)
	if step == logSteps-1 {
		r.Status, r.DueMs = wire.StatusCompleted, 0
	}
	if step == 0 {
		return r, record(r)
	}
	return r, frameOf(r, step-1, step-1)
}

// batch returns a writer's batch for a range of positions.
func batch(from, end int) store.Batch {
	b := store.Batch{Tail: store.Tail{Pos: uint64(end), Hash: fmt.Sprint("tail-", end)}} //nolint:gosec // G115: a small number
	last, begun := map[string]int{}, map[string]bool{}
	for pos := from; pos <= end; pos++ {
		r, f := at(pos)
		last[r.RunID], begun[r.RunID] = pos, begun[r.RunID] || f.First == store.RecordFirst
		b.Frames = append(b.Frames, f)
	}
	for id, pos := range last {
		r, _ := at(pos)
		r.New = begun[id]
		b.Runs = append(b.Runs, r)
	}
	return b
}

func writersRace(t *testing.T, another func() store.Store) {
	const writers = 3
	var wg sync.WaitGroup
	for n := range writers {
		s, chance := another(), rand.New(rand.NewPCG(uint64(n), 7))
		wg.Go(func() {
			tail, err := s.Tail(t.Context())
			for pos := int(tail.Pos); err == nil && pos < logEnd; { //nolint:gosec // G115: a small number
				end := min(logEnd, pos+1+chance.IntN(10))
				err = s.Apply(t.Context(), batch(pos+1, end))
				pos = end
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s := another()
	standsAt(t, s, logEnd)
	for n := range logRuns {
		want, _ := at(logEnd - logRuns + 1 + n)
		got, err := s.Run(t.Context(), want.Key)
		require.NoError(t, err)
		require.Equal(t, want, got)
		frames, err := s.Frames(t.Context(), want.Key, store.RecordFirst, 100)
		require.NoError(t, err)
		require.Len(t, frames, logSteps)
		for step, f := range frames {
			_, wantFrame := at(step*logRuns + n + 1)
			require.Equal(t, wantFrame, f)
		}
	}
	for _, q := range []store.Query{{}, {Tag: "b c"}, {Status: wire.StatusCompleted}} {
		q.Tenant, q.Limit = "acme", 100
		runs, err := s.List(t.Context(), q)
		require.NoError(t, err)
		require.Len(t, runs, logRuns)
	}
	due, err := s.Due(t.Context(), 1<<62, store.Timer{}, 100)
	require.NoError(t, err)
	require.Empty(t, due)
}
