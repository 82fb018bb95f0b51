package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/store/sqlite"
)

// backends are the stores that the benchmarks compare; the file is there to have
// something to compare with on the same machine.
var backends = map[string]func(b *testing.B) store.Store{
	"postgres": func(b *testing.B) store.Store { return open(b, config(b)) },
	"sqlite": func(b *testing.B) store.Store {
		s, err := sqlite.Open(b.Context(), sqlite.Config{Path: filepath.Join(b.TempDir(), "eventlog.db")}, slog.New(slog.DiscardHandler), time.Now)
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, s.Close()) })
		return s
	},
}

func each(b *testing.B, bench func(b *testing.B, s store.Store)) {
	for _, name := range []string{"postgres", "sqlite"} {
		b.Run(name, func(b *testing.B) { bench(b, backends[name](b)) })
	}
}

// merged is one batch of many runs, each with a record and some frames.
func merged(first, runs, events int) store.Batch {
	var out store.Batch
	for n := range runs {
		b := batch(uint64(first+n+1), events)
		out.Runs, out.Frames, out.Tail = append(out.Runs, b.Runs...), append(out.Frames, b.Frames...), b.Tail
	}
	return out
}

// BenchmarkApply stores new runs of a record and four frames each, in batches of a
// quiet host, of a busy one, and of a backlog.
func BenchmarkApply(b *testing.B) {
	for _, runs := range []int{1, 50, 800} {
		b.Run(fmt.Sprintf("runs=%d", runs), func(b *testing.B) {
			each(b, func(b *testing.B, s store.Store) {
				done := 0
				for b.Loop() {
					require.NoError(b, s.Apply(context.Background(), merged(done, runs, 4)))
					done += runs
				}
				b.ReportMetric(float64(5*done)/b.Elapsed().Seconds(), "frames/s")
			})
		})
	}
}

// BenchmarkApply_Again measures the replica that applies a batch second.
func BenchmarkApply_Again(b *testing.B) {
	cfg := config(b)
	s := open(b, cfg)
	batch := merged(0, 50, 4)
	for b.Loop() {
		require.NoError(b, s.Apply(context.Background(), batch))
	}
}

func BenchmarkRead(b *testing.B) {
	const runs, long = 2000, 20_000
	each(b, func(b *testing.B, s store.Store) {
		require.NoError(b, s.Apply(b.Context(), merged(0, runs, 4)))
		deep := batch(runs+1, long)
		require.NoError(b, s.Apply(b.Context(), deep))
		var n atomic.Uint64
		for name, read := range map[string]func() error{
			"run": func() error {
				_, err := s.Run(b.Context(), batch(n.Add(1)%runs+1, 0).Runs[0].Key)
				return err
			},
			"frames/first": func() error {
				_, err := s.Frames(b.Context(), deep.Runs[0].Key, 0, 100)
				return err
			},
			"frames/deep": func() error {
				_, err := s.Frames(b.Context(), deep.Runs[0].Key, long-200, 100)
				return err
			},
			"list/by tag": func() error {
				_, err := s.List(b.Context(), store.Query{Tenant: "acme", Tag: "nightly", Limit: 50})
				return err
			},
		} {
			b.Run(name, func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := read(); err != nil {
							b.Error(err)
						}
					}
				})
			})
		}
	})
}
