package queue_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/engine/lease"
	"waybill.dev/waybill/services/dispatcher/queue"
)

// admitted admits a call with limits, and fails the test on an error.
func admitted(t *testing.T, d *dispatcher, run string, limits ...queue.CallLimit) queue.CallAdmission {
	t.Helper()
	a, err := d.AdmitCall(t.Context(), run, run+" node 0", limits)
	require.NoError(t, err)
	return a
}

func TestAdmitCall_CountsTheCallsOfAllDispatchers(t *testing.T) {
	t.Parallel()
	r := inNATS(t)
	one := r.process(t, queue.Config{Size: 1}, lease.Config{Host: "one"}, nil)
	two := r.process(t, queue.Config{Size: 1}, lease.Config{Host: "two"}, nil)
	server := queue.CallLimit{ID: []string{"mcp", "bank", "concurrency", ""}, Concurrency: 2}
	charge := queue.CallLimit{ID: []string{"mcp", "bank", "charge", "concurrency", ""}, Concurrency: 1}
	first := admitted(t, one, "a", charge, server)
	require.NotNil(t, first.Release)
	refused := admitted(t, two, "b", charge, server)
	require.Nil(t, refused.Release)
	require.Zero(t, refused.Limit)
	second := admitted(t, two, "c", server)
	require.NotNil(t, second.Release, "a refused call leaves no permit")
	refused = admitted(t, one, "d", queue.CallLimit{ID: []string{"mcp", "bank", "read", "concurrency", ""}, Concurrency: 1}, server)
	require.Nil(t, refused.Release)
	require.Equal(t, 1, refused.Limit, "the server's limit")
	first.Release()
	var third queue.CallAdmission
	eventually(t, "the other dispatcher sees the free permit", func() bool {
		third = admitted(t, two, "b", charge, server)
		return third.Release != nil
	})
	second.Release()
	third.Release()
}

func TestAdmitCall_PermitsOfADeadDispatcherAreFree(t *testing.T) {
	t.Parallel()
	r := inNATS(t)
	limit := queue.CallLimit{ID: []string{"mcp", "bank", "concurrency", ""}, Concurrency: 1}
	dying := r.process(t, queue.Config{Size: 1}, lease.Config{Host: "dying"}, nil)
	require.NotNil(t, admitted(t, dying, "a", limit).Release)
	dying.noLeases.Store(true)
	dying.noTickets.Store(true)
	other := r.process(t, queue.Config{Size: 1}, lease.Config{Host: "other"}, nil)
	require.Nil(t, admitted(t, other, "a", limit).Release, "its lease is valid")
	eventually(t, "the lease is over", func() bool { return admitted(t, other, "a", limit).Release != nil })
}

func TestAdmitCall_ARateCountsCallsThatBegin(t *testing.T) {
	t.Parallel()
	d := inMemory().dispatcher(t, queue.Config{Size: 1}, nil)
	rate := queue.CallLimit{ID: []string{"a2a", "planner", "rate", ""}, Rate: 1, Period: time.Minute}
	busy := queue.CallLimit{ID: []string{"a2a", "planner", "concurrency", ""}, Concurrency: 1}
	usedUp := queue.CallLimit{ID: []string{"a2a", "all", "rate", ""}, Rate: 1, Period: time.Hour}
	other := admitted(t, d, "other", busy, usedUp)
	require.NotNil(t, other.Release)
	refused := admitted(t, d, "a", rate, busy)
	require.Nil(t, refused.Release)
	require.Equal(t, 1, refused.Limit, "the concurrency")
	other.Release()
	refused = admitted(t, d, "b", rate, busy, usedUp)
	require.Nil(t, refused.Release)
	require.Equal(t, 2, refused.Limit, "the last rate")
	require.Greater(t, refused.Wait, 50*time.Minute)
	c := admitted(t, d, "c", rate, busy)
	require.NotNil(t, c.Release, "refused calls do not count, and hold no permit")
	c.Release()
	refused = admitted(t, d, "d", rate, busy)
	require.Nil(t, refused.Release)
	require.Greater(t, refused.Wait, 50*time.Second)
	again := admitted(t, d, "c", rate, busy)
	require.NotNil(t, again.Release, "a call that is tried again counts once")
	again.Release()
}
