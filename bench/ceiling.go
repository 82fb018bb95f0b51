package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// fsyncs times small synchronous writes in dir.
func fsyncs(dir string, n int) (p50, p99 time.Duration, err error) {
	f, err := os.CreateTemp(dir, "fsync")
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = f.Close(); _ = os.Remove(f.Name()) }()
	block := make([]byte, 1024)
	all := make([]time.Duration, n)
	for i := range all {
		began := time.Now()
		if _, err := f.Write(block); err != nil {
			return 0, 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, 0, err
		}
		all[i] = time.Since(began)
	}
	slices.Sort(all)
	return percentile(all, 50), percentile(all, 99), nil
}

// ceiling measures what the embedded log alone takes: the two frames of a no-op
// run, guarded as the host guards them, from a number of writers.
func ceiling(ctx context.Context, dir string, durable bool, writers int, d time.Duration) (float64, error) {
	store, err := os.MkdirTemp(dir, "log")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(store) }()
	srv, err := natsd.Start(natsd.Config{Dir: filepath.Join(store, "nats"), Sync: durable, Log: slog.New(slog.DiscardHandler)}, rand.Text())
	if err != nil {
		return 0, err
	}
	defer srv.Stop()
	nc, err := srv.Connect("bench")
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	log, err := jetstream.Open(ctx, nc, jetstream.DefaultConfig())
	if err != nil {
		return 0, err
	}
	var (
		frames atomic.Int64
		failed atomic.Pointer[error]
		wg     sync.WaitGroup
		end    = time.Now().Add(d)
	)
	for w := range writers {
		wg.Go(func() {
			for n := 0; time.Now().Before(end); n++ {
				if err := twoFrames(ctx, log, fmt.Sprintf("run_%d_%d", w, n)); err != nil {
					failed.Store(&err)
					return
				}
				frames.Add(2)
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(frames.Load()) / d.Seconds(), nil
}

func twoFrames(ctx context.Context, log *jetstream.Log, id string) error {
	run := subject.Run{Tenant: "default", WorkflowID: "bench-1", RunID: id}
	start := frame.NewStart(run, []byte(`{"runId":"`+id+`","workflowId":"bench-1","workflowDigest":"sha256:0000000000000000000000000000000000000000000000000000000000000000","owner":{"tenant":"default"}}`))
	pos, err := log.Append(ctx, start, 0)
	if err != nil {
		return err
	}
	start.Pos = pos
	var events []wire.Event
	now := time.Now()
	for i, t := range []wire.EventType{wire.EventRunStarted, wire.EventNodeStarted, wire.EventNodeCompleted, wire.EventRunCompleted} {
		events = append(events, wire.Draft{Type: t, Payload: []byte(`{"nodeId":"a","typeId":"core.noop","attempt":0}`)}.Place(id, i, now))
	}
	_, err = log.Append(ctx, frame.New(run, subject.End, start.Head(), events), pos)
	return err
}
