package cold_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/internal/runlog/cold/sqlite"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// The store loses runs while a sealer works: before a sweep, or after it has marked runs. Frames stay in the log
// until the store is restored.
func TestSealer_RemovesNothingWhileTheStoreLacksRuns(t *testing.T) {
	t.Parallel()
	for name, checks := range map[string]int64{"before the sweep": 0, "before frames are removed": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			run := r.run(t, "r", 1)
			var asked, until atomic.Int64
			until.Store(checks)
			whole := func(context.Context) error {
				if asked.Add(1) > until.Load() {
					return fmt.Errorf("%w: writes are lost", cold.ErrLacking)
				}
				return nil
			}
			s := cold.NewSealer(time.Hour, cold.SealerDeps{
				Log: r.hot, Store: r.store, Past: pastAll, Whole: whole, Clock: func() time.Time { return time.Now().Add(2 * time.Hour) }, Logger: quiet,
			})
			require.ErrorIs(t, s.Sweep(t.Context()), runlog.ErrUnavailable)
			require.Equal(t, checks > 0, r.sealed(t, run))
			left, err := r.hot.Remaining(t.Context(), &frame.Frame{Run: run})
			require.NoError(t, err)
			require.Len(t, left, 2)
			until.Store(1 << 30)
			require.NoError(t, s.Sweep(t.Context()))
			require.True(t, r.sealed(t, run))
			left, err = r.hot.Remaining(t.Context(), &frame.Frame{Run: run})
			require.NoError(t, err)
			require.Empty(t, left)
			r.same(t, run)
		})
	}
}

// leaderless is a log without a leader for reads.
type leaderless struct {
	*memory.Log

	away *atomic.Bool
}

func (l leaderless) Last(ctx context.Context, run subject.Run) (*frame.Frame, error) {
	if l.away.Load() {
		return nil, runlog.ErrUnavailable
	}
	return l.Log.Last(ctx, run)
}

// A run was erased after its object was stored, and the log cannot say so at the moment. The object stays for the
// erasure.
func TestSealer_DiscardsNothingWhileTheLogIsAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := r.run(t, "r", 1)
	o, err := cold.Encode(r.want[run])
	require.NoError(t, err)
	require.NoError(t, r.store.Put(t.Context(), o))
	r.mark(t, run)
	log := leaderless{r.hot, &atomic.Bool{}}
	log.away.Store(true)
	s := r.sealer(log, r.store, pastAll)
	require.ErrorIs(t, s.Sweep(t.Context()), runlog.ErrUnavailable)
	_, _, err = r.store.Blocks(t.Context(), run)
	require.NoError(t, err)
	log.away.Store(false)
	require.NoError(t, s.Sweep(t.Context()))
	frames, err := r.Remaining(t.Context(), r.markOf(t, run))
	require.NoError(t, err)
	require.Len(t, frames, 2)
}

// littered is a store whose other place refuses to remove contents.
type littered struct {
	*sqlite.Store

	cleaned *atomic.Int64
}

func (s littered) Clean(context.Context) error {
	s.cleaned.Add(1)
	return fmt.Errorf("%w: 403 AccessDenied", cold.ErrUnavailable)
}

// A store that cannot be cleaned is reported and counted, and stops nothing.
func TestSealer_SealsIntoAStoreThatCannotBeCleaned(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	run := r.run(t, "r", 1)
	var logged bytes.Buffer
	store := littered{r.store, &atomic.Int64{}}
	logger := slog.New(slog.NewTextHandler(&logged, nil))
	s := cold.NewSealer(time.Hour, cold.SealerDeps{
		Log: r.hot, Store: store, Past: pastAll, Clock: func() time.Time { return time.Now().Add(2 * time.Hour) }, Logger: logger,
	})
	for range 3 {
		require.NoError(t, s.Sweep(t.Context()))
	}
	require.True(t, r.sealed(t, run))
	require.Equal(t, int64(3), store.cleaned.Load())
	require.Equal(t, 1, strings.Count(logged.String(), "403 AccessDenied"), "it is logged once")
	registry := prometheus.NewRegistry()
	registry.MustRegister(cold.NewCollector(store, cold.NewFaults(quiet), s, func(context.Context) (uint64, error) { return 0, nil }))
	families, err := registry.Gather()
	require.NoError(t, err)
	counted := map[string]float64{}
	for _, f := range families {
		if f.GetName() == "waybill_cold_clean_failures_total" {
			counted[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	require.Equal(t, map[string]float64{"waybill_cold_clean_failures_total": 3}, counted)
}
