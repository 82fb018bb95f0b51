package retention_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/retention"
)

type rig struct {
	log    *memory.Log
	store  *kvmemory.Store
	holds  *retention.Holds
	eraser *retention.Eraser
	mu     sync.Mutex
	now    time.Time
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{log: memory.New(), store: kvmemory.New(), now: start}
	r.holds = retention.NewHolds(r.store, r.log, r.clock)
	r.eraser = retention.NewEraser(r.log, r.log, quiet, func(bool) {})
	r.eraser.Guard(r.holds.Claim)
	return r
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

func (r *rig) erase(ctx context.Context, run subject.Run) error {
	_, err := r.eraser.Erase(ctx, run, frame.Requested)
	return err
}

func TestHold_ForbidsErasure(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, other := writeRun(t, r.log, "r", "", true), writeRun(t, r.log, "other", "", true)
	hold, created, err := r.holds.Set(t.Context(), run, retention.Hold{Reason: "case 7", HeldBy: "key_1"})
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, retention.Hold{RunID: "r", Reason: "case 7", HeldBy: "key_1", Since: start}, hold)
	again, created, err := r.holds.Set(t.Context(), run, retention.Hold{Reason: "another", HeldBy: "key_2"})
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, hold, again, "a hold is not replaced")

	err = r.erase(t.Context(), run)
	require.Equal(t, fault.Conflict, fault.CodeOf(err))
	require.ErrorContains(t, err, "legal hold")
	require.NoError(t, r.erase(t.Context(), other))
	all, more, err := r.holds.List(t.Context(), "acme", "", 10)
	require.NoError(t, err)
	require.False(t, more)
	require.Equal(t, []retention.Hold{hold}, all, "a claim is no hold")

	for _, want := range []bool{true, false} {
		released, err := r.holds.Release(t.Context(), run)
		require.NoError(t, err)
		require.Equal(t, want, released)
	}
	require.NoError(t, r.erase(t.Context(), run))
	require.NoError(t, r.erase(t.Context(), run), "an erased run is erased")
	_, _, err = r.holds.Set(t.Context(), run, retention.Hold{Reason: "late"})
	require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
	_, _, err = r.holds.Set(t.Context(), subject.Run{Tenant: "other", RunID: "r"}, retention.Hold{Reason: "theirs"})
	require.Equal(t, fault.RunNotFound, fault.CodeOf(err))
}

// A run that goes on can be held, and a refused erasure leaves no claim.
func TestHold_OfARunThatGoesOn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := writeRun(t, r.log, "r", "", false)
	require.Equal(t, fault.Conflict, fault.CodeOf(r.erase(t.Context(), run)))
	_, created, err := r.holds.Set(t.Context(), run, retention.Hold{Reason: "case 7"})
	require.NoError(t, err)
	require.True(t, created)
}

// A process died between its claim and its mark. Nothing is erased, and the run can be held or
// erased after the claim is over.
func TestClaim_OfADeadProcessEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := writeRun(t, r.log, "r", "", true)
	within, _, err := r.holds.Claim(t.Context(), run)
	require.NoError(t, err)
	until, ok := within.Deadline()
	require.True(t, ok)
	require.Less(t, time.Until(until), 16*time.Second, "the mark is not on its way when the claim ends")
	_, _, err = r.holds.Set(t.Context(), run, retention.Hold{Reason: "case 7"})
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err))
	r.pass(31 * time.Second)
	_, created, err := r.holds.Set(t.Context(), run, retention.Hold{Reason: "case 7"})
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, fault.Conflict, fault.CodeOf(r.erase(t.Context(), run)))
}

// An erasure is not delayed by the claim of another one, and a refused one does not end that claim.
func TestClaim_IsSharedByErasures(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run, going := writeRun(t, r.log, "r", "", true), writeRun(t, r.log, "going", "", false)
	for _, one := range []subject.Run{run, going} {
		_, _, err := r.holds.Claim(t.Context(), one)
		require.NoError(t, err)
	}
	require.NoError(t, r.erase(t.Context(), run))
	require.Equal(t, fault.Conflict, fault.CodeOf(r.erase(t.Context(), going)))
	_, _, err := r.holds.Set(t.Context(), going, retention.Hold{Reason: "case 7"})
	require.Equal(t, fault.ServiceUnavailable, fault.CodeOf(err), "the first erasure may still mark it")
}

// A hold and an erasure at the same time: exactly one of them succeeds.
func TestHold_AgainstErasure(t *testing.T) {
	t.Parallel()
	for range 200 {
		r := newRig(t)
		run := writeRun(t, r.log, "r", "", true)
		var erased, held error
		var wg sync.WaitGroup
		wg.Go(func() { erased = r.erase(t.Context(), run) })
		wg.Go(func() { _, _, held = r.holds.Set(t.Context(), run, retention.Hold{Reason: "case 7"}) })
		wg.Wait()
		_, err := r.log.Last(t.Context(), run)
		require.Equal(t, erased == nil, err != nil, "%v", erased)
		require.NotEqual(t, erased == nil, held == nil, "%v, %v", erased, held)
	}
}

func TestList_PagesHoldsOfOneTenant(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, id := range []string{"c", "a", "b"} {
		_, _, err := r.holds.Set(t.Context(), writeRun(t, r.log, id, "", true), retention.Hold{Reason: id})
		require.NoError(t, err)
	}
	var got []string
	for after := ""; ; {
		page, more, err := r.holds.List(t.Context(), "acme", after, 1)
		require.NoError(t, err)
		require.Len(t, page, 1)
		got, after = append(got, page[0].RunID), page[0].RunID
		if !more {
			break
		}
	}
	require.Equal(t, []string{"a", "b", "c"}, got)
	theirs, _, err := r.holds.List(t.Context(), "acm", "", 10)
	require.NoError(t, err)
	require.Empty(t, theirs)
}
