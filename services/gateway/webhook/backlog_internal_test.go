package webhook

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// In any order of reading and offering, each tenant gets all its frames once and in order, and the
// frames in memory stay below their limit.
func TestBacklog_GivesEveryTenantItsFramesInOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var log []*frame.Frame
		want := map[string][]uint64{}
		for pos := range uint64(100) {
			tenant := fmt.Sprintf("t%d", rnd.IntN(4))
			log = append(log, &frame.Frame{Run: subject.Run{Tenant: tenant}, Pos: pos + 1})
			want[tenant] = append(want[tenant], pos+1)
		}
		b := newBacklog(FeedLimits{Frames: 1 + rnd.IntN(8), PerTenant: 1 + rnd.IntN(4)})
		got, busy := map[string][]uint64{}, map[string]bool{}
		step := func(tenant string) {
			frames, behind, ok := b.take(tenant, 3)
			if !ok {
				delete(busy, tenant)
				return
			}
			if frames == nil {
				upTo := min(b.read, behind+1+rnd.Uint64N(9))
				for _, fr := range log[behind:upTo] {
					if fr.Run.Tenant == tenant {
						frames = append(frames, fr)
					}
				}
				require.True(t, b.reread(tenant, frames, behind, upTo))
			}
			for _, fr := range frames {
				require.Less(t, b.position(tenant), fr.Pos)
				got[tenant] = append(got[tenant], fr.Pos)
			}
			b.done(tenant)
		}
		for b.read < uint64(len(log)) || len(busy) > 0 {
			if n := min(uint64(len(log))-b.read, rnd.Uint64N(12)); n > 0 {
				for _, fr := range log[b.read : b.read+n] {
					if b.add(fr) {
						busy[fr.Run.Tenant] = true
					}
				}
				b.read += n
				require.LessOrEqual(t, b.held, b.limits.Frames)
			}
			for tenant := range busy {
				if rnd.IntN(2) == 0 {
					step(tenant)
				}
			}
		}
		require.Equal(t, want, got, "seed %d", seed)
		require.Zero(t, b.held)
		require.Empty(t, b.tenants)
	}
}

func TestBacklog_RewindsATenant(t *testing.T) {
	t.Parallel()
	b := newBacklog(FeedLimits{Frames: 9, PerTenant: 9})
	for pos := range uint64(5) {
		b.add(&frame.Frame{Run: subject.Run{Tenant: "a"}, Pos: pos + 1})
	}
	b.read = 5
	_, _, ok := b.take("a", 2)
	require.True(t, ok)
	require.False(t, b.rewind("a", 3))
	require.Equal(t, uint64(0), b.position("a"), "the first is not offered yet")
	b.done("a")
	_, behind, ok := b.take("a", 2)
	require.True(t, ok)
	require.Equal(t, uint64(0), behind)
	b.rewind("a", 0)
	require.True(t, b.reread("a", nil, 0, 4))
	b.rewind("a", 1)
	require.False(t, b.reread("a", nil, 4, 5), "it was rewound while the log was read")
	require.True(t, b.rewind("idle", 2))
	require.Equal(t, uint64(2), b.position("idle"))
	require.Zero(t, b.held)
}

// The record has a limited number of positions, and earlier versions read Pos of it.
func TestFeedRecord_KeepsThePositionsOfTheSlowestTenants(t *testing.T) {
	t.Parallel()
	b := newBacklog(FeedLimits{Frames: 9, PerTenant: 9})
	b.read = 10_000
	for i := range maxPositions + 3 {
		b.rewind(fmt.Sprintf("t%d", i), uint64(1000+i))
	}
	var r feedRecord
	b.progress(&r)
	doc, err := json.Marshal(r)
	require.NoError(t, err)
	var back feedRecord
	require.NoError(t, json.Unmarshal(doc, &back))
	require.Len(t, back.Behind, maxPositions)
	require.Equal(t, uint64(1000), back.Pos)
	require.Equal(t, uint64(1000), back.position("t0"))
	require.Equal(t, uint64(1000+maxPositions), back.position("t258"))
	require.Equal(t, uint64(1000+maxPositions), back.position("another"))
	var old feedRecord
	require.NoError(t, json.Unmarshal([]byte(`{"pos":7,"known":3}`), &old))
	require.Equal(t, uint64(7), old.position("any"))
}
