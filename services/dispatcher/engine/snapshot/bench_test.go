package snapshot_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv/jetkv"
	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/services/dispatcher/engine/snapshot"
)

// BenchmarkRead is what a dispatcher that takes up a run does first: "whole" folds all of its log,
// "snapshot" what follows a snapshot that is 100 events old. "log" is only the read of the log.
func BenchmarkRead(b *testing.B) {
	nc := natsdtest.Connect(b)
	log, err := jetstream.Open(b.Context(), nc, jetstream.DefaultConfig())
	require.NoError(b, err)
	bucket, err := jetkv.Open(b.Context(), nc, jetkv.Config{Bucket: "snapshots", Replicas: 1})
	require.NoError(b, err)
	for _, events := range []int{100, 1_000, 10_000} {
		r := theRun
		r.RunID = fmt.Sprint("run-", events)
		w := begin(b, log, r, unchanged)
		tail := min(events, snapshot.Every/2) / 10
		w.nodes(b, events/10-tail)
		k := keeper(b, log, bucket, nil)
		if events > snapshot.Every {
			require.Equal(b, snapshot.Written, written(b, log, bucket, r))
		}
		w.nodes(b, tail)
		b.Run(fmt.Sprint("whole/", events), func(b *testing.B) {
			for b.Loop() {
				f, err := k.FoldAll(b.Context(), r)
				require.NoError(b, err)
				require.Equal(b, events+1, f.State.Next)
			}
		})
		b.Run(fmt.Sprint("log/", events), func(b *testing.B) {
			for b.Loop() {
				_, err := log.Run(b.Context(), r)
				require.NoError(b, err)
			}
		})
		b.Run(fmt.Sprint("snapshot/", events), func(b *testing.B) {
			for b.Loop() {
				f, err := k.Read(b.Context(), r, snapshot.Latest)
				require.NoError(b, err)
				require.Equal(b, events+1, f.State.Next)
			}
			if e, err := bucket.Get(b.Context(), snapshot.Place(r)); err == nil {
				b.ReportMetric(float64(len(e.Value)), "stored-bytes")
			}
		})
	}
}
