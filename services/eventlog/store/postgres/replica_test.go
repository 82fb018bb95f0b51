package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/postgrestest"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/services/eventlog/hub"
	"waybill.dev/waybill/services/eventlog/ingest"
	"waybill.dev/waybill/services/eventlog/logtest"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/postgres"
	"waybill.dev/waybill/services/eventlog/store/writebehind"
)

// replica is an event log process as far as the store is concerned.
type replica struct {
	store.Store
	*ingest.Ingester
}

// replicas runs some over one schema, every second one with what commits later in
// front of it.
func replicas(t testing.TB, n int, log *memory.Log, cfg postgres.Config) []replica {
	t.Helper()
	var out []replica
	for i := range n {
		s := open(t, cfg)
		if i%2 == 1 {
			s = behind(t, s)
		}
		r := replica{Store: s, Ingester: ingest.New(log, s, hub.New(16), 1<<20, func() {}, nil, slog.New(slog.DiscardHandler))}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- r.Ingester.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			require.NoError(t, <-done)
		})
		out = append(out, r)
	}
	return out
}

// behind serves what a store has not committed yet.
func behind(t testing.TB, s store.Store) store.Store {
	t.Helper()
	front := writebehind.New(s, writebehind.DefaultConfig())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- front.Write(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return front
}

// write appends runs that take turns, and calls between after every tenth step.
func write(t testing.TB, log *memory.Log, prefix string, runs int, between func(step int)) []*logtest.Writer {
	t.Helper()
	var writers []*logtest.Writer
	for i := range runs {
		w := logtest.Begin(t, log, logtest.Record(fmt.Sprintf("%s-%d", prefix, i)))
		w.Step(logtest.RunStarted, logtest.Log("a"))
		writers = append(writers, w)
	}
	for step := range 5 * runs {
		w := writers[step%runs]
		w.Step(logtest.Node(fmt.Sprint("n", step))...)
		if step%10 == 9 {
			between(step)
		}
	}
	for i, w := range writers {
		if i%3 != 0 {
			w.Step(logtest.RunCompleted)
		}
	}
	return writers
}

// same checks that a store returns exactly the runs that their writers wrote.
func same(t testing.TB, log *memory.Log, r replica, writers []*logtest.Writer) {
	t.Helper()
	frames := log.Frames()
	require.NoError(t, r.Wait(within(t), uint64(len(frames))), "applied: %+v", r.Stats())
	var rows []store.Run
	require.Eventually(t, func() (ok bool) { // a commit may wait for its next try
		var err error
		rows, err = r.List(t.Context(), store.Query{Tenant: logtest.Tenant, Limit: 10_000})
		if errors.Is(err, store.ErrDamaged) {
			r.Ingester.Rebuild(err) // as the service does
		}
		return err == nil && len(rows) == len(writers)
	}, 30*time.Second, time.Millisecond, "%d rows of %d", len(rows), len(writers))
	require.NoError(t, r.Wait(within(t), uint64(len(frames))))
	for _, w := range writers {
		row, err := r.Store.Run(t.Context(), project.Key(w.Run()))
		require.NoError(t, err)
		require.Equal(t, w.Head.Pos, row.Pos)
		require.Empty(t, row.Damage)
		run, err := project.Load(t.Context(), r.Store, row)
		require.NoError(t, err)
		require.Equal(t, w.Snapshot(), string(run.State.SnapshotJSON()))
		next := 0
		stored, err := r.Frames(t.Context(), row.Key, 0, math.MaxInt)
		require.NoError(t, err)
		for _, f := range stored {
			require.Equal(t, next, f.First, "frames are contiguous")
			next = f.Last + 1
		}
		require.Equal(t, len(w.Events), next)
	}
	tail, err := r.Tail(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.Tail{Pos: uint64(len(frames)), Hash: frames[len(frames)-1].Hash}, tail)
}

// tables returns everything a store holds, in an order independent of the writer.
func tables(t testing.TB, s store.Store) (rows []store.Run, frames []store.Frame) {
	t.Helper()
	rows, err := s.List(t.Context(), store.Query{Tenant: logtest.Tenant, Limit: 10_000})
	require.NoError(t, err)
	for _, r := range rows {
		f, err := s.Frames(t.Context(), r.Key, store.RecordFirst, math.MaxInt)
		require.NoError(t, err)
		frames = append(frames, f...)
	}
	return rows, frames
}

func TestReplicas_RacingAreLikeOne(t *testing.T) {
	t.Parallel()
	log := memory.New()
	both := replicas(t, 3, log, config(t))
	writers := write(t, log, "a", 40, func(int) {})
	for _, r := range both {
		same(t, log, r, writers)
		require.Zero(t, r.Stats().Rebuilds)
	}
	one := replicas(t, 1, log, config(t))[0]
	same(t, log, one, writers)
	wantRows, wantFrames := tables(t, one.Store)
	rows, frames := tables(t, both[0].Store)
	require.Equal(t, wantRows, rows)
	require.Equal(t, wantFrames, frames)
}

func TestReplicas_RebuildOnceForAll(t *testing.T) {
	t.Parallel()
	log := memory.New()
	cfg := config(t)
	both := replicas(t, 2, log, cfg)
	writers := write(t, log, "a", 30, func(step int) {
		if step != 79 {
			return
		}
		for _, r := range both {
			require.NoError(t, r.Wait(within(t), uint64(len(log.Frames()))))
		}
		execute(t, cfg, `UPDATE {tables}.runs SET hash = 'x'`)
		for _, r := range both {
			_, err := r.Store.Run(t.Context(), store.Key{Tenant: logtest.Tenant, RunID: "a-1"})
			if err != nil { // memory may have it
				require.ErrorIs(t, err, store.ErrDamaged)
				r.Ingester.Rebuild(err)
			}
		}
	})
	for _, r := range both {
		same(t, log, r, writers)
	}
	var rebuilds int64
	for _, r := range both {
		rebuilds += r.Stats().Rebuilds
	}
	require.Positive(t, rebuilds)
}

func TestReplicas_OutliveTheServer(t *testing.T) {
	t.Parallel()
	for name, outlives := range map[string]func(*testing.T, *postgrestest.Server){
		"restarted": outliveRestarts,
		"replaced by one that lacks the last batches": noticeWhatIsLost,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outlives(t, postgrestest.Start(t))
		})
	}
}

// The database stops while replicas write and read, cleanly and by a crash, and restarts.
func outliveRestarts(t *testing.T, own *postgrestest.Server) {
	log := memory.New()
	both := replicas(t, 2, log, postgres.Config{
		URL:            own.URL(),
		Schema:         "restarted",
		MaxConns:       4,
		ConnectTimeout: time.Second,
	})
	ctx, stop := context.WithCancel(t.Context())
	var reading sync.WaitGroup
	for _, r := range both {
		reading.Go(func() {
			for ctx.Err() == nil {
				_, err := r.List(ctx, store.Query{Tenant: logtest.Tenant, Limit: 20})
				if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
					t.Error("a deadline that the caller has not set:", err)
				}
			}
		})
	}
	modes := []string{"fast", "immediate"}
	writers := write(t, log, "a", 40, func(step int) {
		if step%100 != 49 {
			return
		}
		mode := modes[step/100%2]
		require.NoError(t, own.Stop(mode))
		_, err := both[0].Tail(t.Context())
		require.Error(t, err)
		require.NotErrorIs(t, err, store.ErrDamaged, "unavailable is not damaged")
		require.NoError(t, own.Restart())
	})
	stop()
	reading.Wait()
	for _, r := range both {
		same(t, log, r, writers)
		require.Zero(t, r.Stats().Rebuilds)
	}
}

// After a failover the new primary may lack what the old one had committed. What is
// lost is applied again, without a rebuild, and nothing is read before.
func noticeWhatIsLost(t *testing.T, own *postgrestest.Server) {
	cfg := postgres.Config{URL: own.URL(), Schema: "replaced", MaxConns: 4}
	s, reader := open(t, cfg), open(t, cfg)
	log := memory.New()
	var writers []*logtest.Writer

	both := replicas(t, 2, log, cfg)
	writers = append(writers, write(t, log, "a", 10, func(int) {})...)
	for _, r := range both {
		same(t, log, r, writers)
	}
	_, err := s.Tail(t.Context())
	require.NoError(t, err)
	_, err = reader.Tail(t.Context())
	require.NoError(t, err)
	require.NoError(t, own.Stop("fast"))
	require.NoError(t, own.Keep())
	require.NoError(t, own.Restart())
	writers = append(writers, write(t, log, "b", 10, func(int) {})...)
	for _, r := range both {
		same(t, log, r, writers)
	}
	_, err = s.Tail(t.Context())
	require.NoError(t, err)
	// What a writer has only read of a run is not in its batches, either.
	_, err = reader.Run(t.Context(), store.Key{Tenant: logtest.Tenant, RunID: "b-1"})
	require.NoError(t, err)
	require.NoError(t, own.Stop("fast"))
	require.NoError(t, own.Recall())
	require.NoError(t, own.Restart())
	err = reader.Apply(t.Context(), store.Batch{Tail: store.Tail{Pos: 1 << 40, Hash: "beyond"}})
	require.ErrorIs(t, err, store.ErrMoved)

	_, err = s.Run(t.Context(), store.Key{Tenant: logtest.Tenant, RunID: "a-1"})
	require.ErrorIs(t, err, store.ErrMoved, "it reads nothing until it has checked")
	require.NoError(t, s.Rebuild(t.Context()))
	_, err = s.Run(t.Context(), store.Key{Tenant: logtest.Tenant, RunID: "a-1"})
	require.NoError(t, err, "nothing was emptied")

	writers = append(writers, write(t, log, "c", 10, func(int) {})...)
	for _, r := range both {
		same(t, log, r, writers)
		require.Zero(t, r.Stats().Rebuilds)
	}
}
