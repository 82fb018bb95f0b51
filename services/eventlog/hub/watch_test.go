package hub_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/hub"
	"waybill.dev/waybill/services/eventlog/store"
)

// listed is a row of a run.
func listed(tenant, runID string, status wire.Status) store.Run {
	return store.Run{Key: store.Key{Tenant: tenant, RunID: runID}, Status: status}
}

// taken returns the pending changes of a watch, as "run status".
func taken(t *testing.T, w *hub.Watch) []string {
	t.Helper()
	changes, err := w.Next(t.Context())
	require.NoError(t, err)
	var out []string
	for _, c := range changes {
		status := wire.Status("?")
		if c.Row != nil {
			status = c.Row.Status
		}
		out = append(out, c.Key.RunID+" "+string(status))
	}
	return out
}

func TestWatch_GetsEachRunOfItsTenantOnceAsItIsByThen(t *testing.T) {
	t.Parallel()
	h := hub.New(4)
	w := h.Watch("acme")
	defer w.Close()
	h.Show([]store.Run{
		listed("acme", "a", wire.StatusPending), listed("beta", "x", wire.StatusPending),
		listed("acme", "b", wire.StatusPending),
	})
	h.Show([]store.Run{listed("acme", "a", wire.StatusRunning)})
	require.Equal(t, []string{"a running", "b pending"}, taken(t, w))
	h.Show([]store.Run{listed("acme", "a", wire.StatusCompleted)})
	h.Touch(store.Key{Tenant: "acme", RunID: "b"})
	h.Touch(store.Key{Tenant: "beta", RunID: "x"})
	require.Equal(t, []string{"a completed", "b ?"}, taken(t, w))
}

func TestWatch_ReportsOnlyListedRuns(t *testing.T) {
	t.Parallel()
	h := hub.New(4)
	w := h.Watch("acme")
	defer w.Close()
	row := listed("acme", "a", wire.StatusRunning)
	h.Show([]store.Run{row})
	require.Equal(t, []string{"a running"}, taken(t, w))
	for i := range 10 { // events that a list shows nothing of
		row.Head, row.Pos = i, uint64(i)
		h.Show([]store.Run{row})
	}
	row.Asks = 1
	h.Show([]store.Run{row, listed("acme", "b", wire.StatusPending)})
	require.Equal(t, []string{"a running", "b pending"}, taken(t, w))
}

func TestWatch_IsCutOffWhenItDoesNotKeepUp(t *testing.T) {
	t.Parallel()
	h := hub.New(4)
	slow, other := h.Watch("acme"), h.Watch("beta")
	defer slow.Close()
	defer other.Close()
	for i := range 2000 {
		h.Show([]store.Run{listed("acme", fmt.Sprint(i), wire.StatusPending)})
	}
	for range 2 {
		_, err := slow.Next(t.Context())
		require.ErrorIs(t, err, hub.ErrLagged)
	}
	h.Show([]store.Run{listed("beta", "x", wire.StatusPending)})
	require.Equal(t, []string{"x pending"}, taken(t, other), "others do not notice")
	require.EqualValues(t, 1, h.Lags())
	h.TouchAll()
	_, err := other.Next(t.Context())
	require.ErrorIs(t, err, hub.ErrLagged)
}

func TestWatch_EndsWithTheHub(t *testing.T) {
	t.Parallel()
	h := hub.New(4)
	before := h.Watch("acme")
	h.Close()
	for _, w := range []*hub.Watch{before, h.Watch("acme")} {
		_, err := w.Next(t.Context())
		require.ErrorIs(t, err, hub.ErrClosed)
		w.Close()
		w.Close()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := hub.New(1).Watch("acme").Next(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
