package ingest_test

import (
	"context"
	"fmt"
	"testing"

	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/services/eventlog/logtest"
)

// BenchmarkIngest_Backlog applies a backlog of whole runs of two frames each.
func BenchmarkIngest_Backlog(b *testing.B) {
	for _, words := range []bool{false, true} {
		b.Run(fmt.Sprintf("words=%t", words), func(b *testing.B) { backlog(b, words) })
	}
}

func backlog(b *testing.B, words bool) {
	b.Helper()
	const runs = 10_000
	log := memory.New()
	for i := range runs {
		logtest.Whole(b, log, fmt.Sprintf("run-%08d", i*2654435761%100_000_000))
	}
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		r := newRig(b, log)
		if words {
			r.ing.IndexWords()
		}
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan struct{})
		b.StartTimer()
		go func() { defer close(done); _ = r.ing.Run(ctx) }()
		if err := r.ing.Wait(ctx, 2*runs); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		cancel()
		<-done
		r.close()
		b.StartTimer()
	}
	b.ReportMetric(float64(2*runs*b.N)/b.Elapsed().Seconds(), "frames/s")
}

// BenchmarkIngest_Single measures one frame on a quiet log, from its append to
// the moment a reader may see it.
func BenchmarkIngest_Single(b *testing.B) {
	log := memory.New()
	r := newRig(b, log)
	r.run(b)
	w := logtest.Begin(b, log, logtest.Record("run-1"))
	b.ReportAllocs()
	for b.Loop() {
		w.Step(logtest.Log("tick"))
		if err := r.ing.Wait(b.Context(), w.Head.Pos); err != nil {
			b.Fatal(err)
		}
	}
}
