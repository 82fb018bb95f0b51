package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/tally"
)

// counted is what the frame at a position adds, minutes after the epoch.
func counted(pos uint64, tenant, workflow string, minutes int) tally.Delta {
	d := tally.Delta{Pos: pos, Tenant: tenant, WorkflowID: workflow, At: epoch.Add(time.Duration(minutes) * time.Minute)}
	d.Tally.Created = 1
	d.Tally.Took.Add(int64(minutes))
	d.Tally.Of(tally.Model{Provider: "p \"", Model: "m\n\x00"}).Cost = tally.Dollars(0.25)
	return d
}

func count(t *testing.T, s store.Store, pos uint64, deltas ...tally.Delta) {
	t.Helper()
	require.NoError(t, s.Apply(t.Context(), store.Batch{Tallies: deltas, Tail: store.Tail{Pos: pos, Hash: "h"}}))
}

func readTallies(t *testing.T, s store.Store, q store.TallyQuery) (out []store.Tallied) {
	t.Helper()
	require.NoError(t, s.Tallies(t.Context(), q, func(one *store.Tallied) error {
		out = append(out, *one)
		return nil
	}))
	return out
}

// created returns the number of created runs by workflow and bucket, in minutes after the epoch.
func created(t *testing.T, s store.Store, q store.TallyQuery) map[string]map[int64]int64 {
	t.Helper()
	if q.Tenant == "" {
		q.Tenant = "acme"
	}
	if q.Until == 0 {
		q.Until = epoch.Unix() * 2
	}
	rows := readTallies(t, s, q)
	out := map[string]map[int64]int64{}
	for i, r := range rows {
		require.Equal(t, q.Tenant, r.Tenant)
		require.Equal(t, q.Grain, r.Grain)
		if i > 0 {
			require.LessOrEqual(t, rows[i-1].At, r.At, "ordered by time")
		}
		if out[r.WorkflowID] == nil {
			out[r.WorkflowID] = map[int64]int64{}
		}
		out[r.WorkflowID][(r.At-epoch.Unix())/60] = r.Tally.Created
	}
	return out
}

func addsTallies(t *testing.T, s store.Store) {
	count(t, s, 12, counted(11, "acme", "a", 0), counted(12, "acme", "a", 4))
	count(t, s, 14, counted(13, "acme", "a", 61), counted(13, "acme", "b \x00", 61), counted(14, "other", "a", 61))
	require.Equal(t, map[string]map[int64]int64{"a": {0: 2, 60: 1}, "b \x00": {60: 1}}, created(t, s, store.TallyQuery{Grain: tally.Fine}))
	require.Equal(t, map[string]map[int64]int64{"a": {0: 2, 60: 1}}, created(t, s, store.TallyQuery{Grain: tally.Hourly, WorkflowID: "a"}))
	require.Equal(t, map[string]map[int64]int64{"a": {-720: 3}, "b \x00": {-720: 1}}, created(t, s, store.TallyQuery{Grain: tally.Daily}))
	require.Equal(t, map[string]map[int64]int64{"a": {60: 1}}, created(t, s, store.TallyQuery{Tenant: "other", Grain: tally.Hourly}))
	hour := epoch.Unix()
	require.Equal(t, map[string]map[int64]int64{"a": {0: 2}}, created(t, s, store.TallyQuery{Grain: tally.Hourly, From: hour, Until: hour + 3600}))

	rows := readTallies(t, s, store.TallyQuery{Tenant: "acme", Grain: tally.Daily, Until: hour + 86400, WorkflowID: "a"})
	require.Len(t, rows, 1)
	want := counted(0, "", "", 0).Tally
	second, third := counted(0, "", "", 4).Tally, counted(0, "", "", 61).Tally
	want.Merge(&second)
	want.Merge(&third)
	require.Equal(t, want.Took, rows[0].Tally.Took)
	require.EqualValues(t, 750_000_000, rows[0].Tally.Of(rowModel(rows[0].Tally)).Cost)
}

// rowModel returns the only model of a tally.
func rowModel(t tally.Tally) (m tally.Model) {
	for m = range t.Models {
	}
	return m
}

// readsTalliesOneByOne reads more rows than a store reads at a time, up to a limit and an error.
func readsTalliesOneByOne(t *testing.T, s store.Store) {
	const workflows = 2500
	var deltas []tally.Delta
	for n := range workflows {
		deltas = append(deltas, counted(11, "acme", fmt.Sprintf("w%04d", n), 0))
	}
	count(t, s, 12, append(deltas, counted(12, "acme \x00", "w", 0), counted(12, "b", "w", 0))...)
	q := store.TallyQuery{Tenant: "acme", Grain: tally.Fine, Until: epoch.Unix() * 2}
	rows := readTallies(t, s, q)
	require.Len(t, rows, workflows)
	for n, r := range rows {
		require.Equal(t, fmt.Sprintf("w%04d", n), r.WorkflowID)
	}
	q.MaxBytes = (256 + len(rows[0].WorkflowID) + rows[0].Stored) * 10
	seen := 0
	err := s.Tallies(t.Context(), q, func(*store.Tallied) error { seen++; return nil })
	require.ErrorIs(t, err, store.ErrTooLarge)
	require.LessOrEqual(t, seen, 11)
	stop := errors.New("stop")
	require.ErrorIs(t, s.Tallies(t.Context(), q, func(*store.Tallied) error { return stop }), stop)

	tenants, err := s.TalliedTenants(t.Context(), "", 2)
	require.NoError(t, err)
	require.Len(t, tenants, 2)
	more, err := s.TalliedTenants(t.Context(), tenants[1], 9)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"acme", "acme \x00", "b"}, append(tenants, more...))
}

func countsOnce(t *testing.T, s store.Store) {
	count(t, s, 12, counted(11, "acme", "a", 0), counted(12, "acme", "a", 0))
	count(t, s, 12, counted(11, "acme", "a", 0), counted(12, "acme", "a", 0)) // again
	count(t, s, 13, counted(12, "acme", "a", 0), counted(13, "acme", "a", 0)) // overlaps
	require.Equal(t, map[string]map[int64]int64{"a": {0: 3}}, created(t, s, store.TallyQuery{Grain: tally.Hourly}))
}

func expiresTallies(t *testing.T, s store.Store) {
	const day = 24 * 60
	pos := uint64(10)
	for _, minutes := range []int{0, 5, 2 * day, 4 * day, 10 * day, 16 * day} {
		pos++
		count(t, s, pos, counted(pos, "acme", "a", minutes), counted(pos, "other", "b", min(minutes, 5)))
	}
	require.Equal(t, map[string]map[int64]int64{"a": {16 * day: 1}}, created(t, s, store.TallyQuery{Grain: tally.Fine}))
	require.Equal(t, map[string]map[int64]int64{"a": {2 * day: 1, 4 * day: 1, 10 * day: 1, 16 * day: 1}}, created(t, s, store.TallyQuery{Grain: tally.Hourly}))
	require.Len(t, created(t, s, store.TallyQuery{Grain: tally.Daily})["a"], 5)
	require.Equal(t, map[string]map[int64]int64{"b": {0: 1, 5: 5}}, created(t, s, store.TallyQuery{Tenant: "other", Grain: tally.Fine}))
	count(t, s, pos+2, counted(pos+2, "acme", "a", 40*day), counted(pos+1, "acme", "a", 0))
	require.Equal(t, map[string]map[int64]int64{"a": {40 * day: 1}}, created(t, s, store.TallyQuery{Grain: tally.Fine}), "both in one batch")
}

func keepsTalliesOfErased(t *testing.T, s store.Store) {
	a, b, theirs := row("a", 1), row("b", 2), row("c", 3)
	theirs.Tenant = "other"
	apply(t, s, 20, []store.Run{a, b, theirs})
	count(t, s, 23, counted(21, "acme", "a", 0), counted(22, "acme", "a", 0), counted(23, "other", "a", 0))
	erase := func(pos uint64, r store.Run) {
		require.NoError(t, s.Apply(t.Context(), store.Batch{
			Erased: []store.Erasure{{Key: r.Key, CreatedAt: r.CreatedAt, Tags: r.Tags}}, Tail: store.Tail{Pos: pos, Hash: "h"},
		}))
	}
	erase(24, a)
	require.Equal(t, map[string]map[int64]int64{"a": {0: 2}}, created(t, s, store.TallyQuery{Grain: tally.Hourly}))
	erase(25, b)
	for _, g := range tally.Grains {
		require.Empty(t, created(t, s, store.TallyQuery{Grain: g}), "nothing is left of a tenant without runs")
	}
	require.Equal(t, map[string]map[int64]int64{"a": {0: 1}}, created(t, s, store.TallyQuery{Tenant: "other", Grain: tally.Hourly}))
	require.NoError(t, s.Rebuild(t.Context()))
	_, err := s.Tail(t.Context())
	require.NoError(t, err)
	require.Empty(t, created(t, s, store.TallyQuery{Tenant: "other", Grain: tally.Hourly}))
}

// writersCountOnce lets two writers apply the same frames in batches that end at other positions.
func writersCountOnce(t *testing.T, another func() store.Store) {
	a, b := pair(t, another)
	at := func(positions ...uint64) (out []tally.Delta) {
		for _, pos := range positions {
			out = append(out, counted(pos, "acme", "a", 0))
		}
		return out
	}
	count(t, a, 12, at(10, 11, 12)...)
	count(t, b, 11, at(10, 11)...)
	count(t, b, 14, at(12, 13, 14)...)
	count(t, a, 15, at(13, 14, 15)...)
	require.Equal(t, map[string]map[int64]int64{"a": {0: 6}}, created(t, b, store.TallyQuery{Grain: tally.Hourly}))
}
