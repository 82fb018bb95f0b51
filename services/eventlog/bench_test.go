package eventlog_test

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/logtest"
)

func BenchmarkGetRun(b *testing.B) {
	r := newRig(b)
	live := r.begin(b, "live")
	live.Step(append([]wire.Draft{logtest.RunStarted}, logtest.Node("n1")...)...)
	logtest.Whole(b, r.log, "ended")
	calls := map[string]func(context.Context, *eventlogv1.GetRunRequest) error{
		"handler": func(ctx context.Context, req *eventlogv1.GetRunRequest) error {
			_, err := r.svc.GetRun(ctx, req)
			return err
		},
		"grpc": func(ctx context.Context, req *eventlogv1.GetRunRequest) error {
			_, err := r.GetRun(ctx, req)
			return err
		},
	}
	for name, call := range calls {
		for _, id := range []string{"live", "ended"} {
			b.Run(name+"/"+id, func(b *testing.B) {
				req := &eventlogv1.GetRunRequest{Tenant: logtest.Tenant, RunId: id}
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := call(b.Context(), req); err != nil {
							b.Error(err)
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reads/s")
			})
		}
	}
}

func BenchmarkReadEvents_DeepPage(b *testing.B) {
	const events, perFrame = 100_000, 20
	r := newRig(b)
	w := r.begin(b, "long")
	w.Step(logtest.RunStarted)
	drafts := make([]wire.Draft, perFrame)
	for i := range drafts {
		drafts[i] = logtest.Log("one of very many lines that a long run writes")
	}
	for range events / perFrame {
		w.Step(drafts...)
	}
	for _, after := range []int32{-1, events / 2, events - 101} {
		b.Run(fmt.Sprint("after=", after), func(b *testing.B) {
			req := &eventlogv1.ReadEventsRequest{Tenant: logtest.Tenant, RunId: "long", After: after, Limit: 100}
			b.ReportAllocs()
			for b.Loop() {
				resp, err := r.svc.ReadEvents(b.Context(), req)
				if err != nil || len(resp.GetEvents()) != 100 {
					b.Fatal(err, len(resp.GetEvents()))
				}
			}
		})
	}
}

// BenchmarkFollow_FanOut measures one event from its append until the last of
// 500 followers has it.
func BenchmarkFollow_FanOut(b *testing.B) {
	const followers = 500
	r := newRig(b)
	w := r.begin(b, "watched")
	var seen sync.WaitGroup
	ctx, cancel := context.WithCancel(b.Context())
	var streams sync.WaitGroup
	for range followers {
		s := r.follow(b, ctx, "watched", -1, false)
		_, err := s.Recv()
		require.NoError(b, err)
		streams.Go(func() {
			for {
				resp, err := s.Recv()
				if err != nil {
					if err != io.EOF && ctx.Err() == nil {
						b.Error(err)
					}
					return
				}
				seen.Add(-len(resp.GetEvents()))
			}
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		seen.Add(followers)
		w.Step(logtest.Log("news"))
		seen.Wait()
	}
	b.ReportMetric(float64(followers*b.N)/b.Elapsed().Seconds(), "deliveries/s")
	cancel()
	streams.Wait()
}
