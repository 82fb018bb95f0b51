package snapshot_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/jetkv"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/services/dispatcher/snapshot"
)

// BenchmarkRead is what a dispatcher that takes up a run does first: from the whole log, and from a
// snapshot that is half the distance between two snapshots old. In memory the log's own read costs
// nothing.
func BenchmarkRead(b *testing.B) {
	nc := natsdtest.Connect(b)
	nats, err := jetstream.Open(b.Context(), nc, jetstream.DefaultConfig())
	require.NoError(b, err)
	bucket, err := jetkv.Open(b.Context(), nc, jetkv.Config{Bucket: "snapshots", Replicas: 1})
	require.NoError(b, err)
	for _, at := range []struct {
		name string
		log  runlog.Log
		kv   kv.Store
	}{{"memory", memory.New(), kvmemory.New()}, {"nats", nats, bucket}} {
		for _, events := range []int{100, 1_000, 10_000} {
			r := theRun
			r.RunID = fmt.Sprint("run-", events)
			w := begin(b, at.log, r, unchanged)
			tail := min(events, snapshot.Every/2) / 10
			w.nodes(b, events/10-tail)
			k := keeper(b, at.log, at.kv, nil)
			if events > snapshot.Every {
				require.Equal(b, snapshot.Written, written(b, at.log, at.kv, r))
			}
			w.nodes(b, tail)
			b.Run(fmt.Sprint(at.name, "/whole/", events), func(b *testing.B) {
				for b.Loop() {
					f, err := k.Whole(b.Context(), r)
					require.NoError(b, err)
					require.Equal(b, events+1, f.State.Next)
				}
			})
			b.Run(fmt.Sprint(at.name, "/log/", events), func(b *testing.B) {
				for b.Loop() {
					_, err := at.log.Run(b.Context(), r)
					require.NoError(b, err)
				}
			})
			b.Run(fmt.Sprint(at.name, "/snapshot/", events), func(b *testing.B) {
				from := 0
				for b.Loop() {
					f, err := k.Read(b.Context(), r, snapshot.Latest)
					require.NoError(b, err)
					require.Equal(b, events+1, f.State.Next)
					from = f.From
				}
				e, err := at.kv.Get(b.Context(), snapshot.Place(r))
				if err == nil {
					b.ReportMetric(float64(len(e.Value)), "bytes")
				}
				b.ReportMetric(float64(events+1-from), "events/op")
			})
		}
	}
}
