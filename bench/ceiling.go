package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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
func fsyncs(dir string, n int) (samples, error) {
	f, err := os.CreateTemp(dir, "fsync")
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close(); _ = os.Remove(f.Name()) }()
	block := make([]byte, 1024)
	all := make(samples, n)
	for i := range all {
		began := time.Now()
		if _, err := f.Write(block); err != nil {
			return nil, err
		}
		if err := f.Sync(); err != nil {
			return nil, err
		}
		all[i] = time.Since(began)
	}
	return all.sorted(), nil
}

// bareLog is the embedded log alone, on a fresh directory.
type bareLog struct {
	*jetstream.Log
	stop func()
}

func openLog(ctx context.Context, dir string, durable bool) (bareLog, error) {
	store, err := os.MkdirTemp(dir, "log")
	if err != nil {
		return bareLog{}, err
	}
	l := bareLog{stop: func() { _ = os.RemoveAll(store) }}
	srv, err := natsd.Start(ctx, natsd.Config{
		Dir:  filepath.Join(store, "nats"),
		Sync: durable,
		Log:  slog.New(slog.DiscardHandler),
	}, rand.Text())
	if err != nil {
		l.stop()
		return bareLog{}, err
	}
	l.stop = func() { srv.Stop(); _ = os.RemoveAll(store) }
	nc, err := srv.Connect("bench")
	if err != nil {
		l.stop()
		return bareLog{}, err
	}
	l.stop = func() { nc.Close(); srv.Stop(); _ = os.RemoveAll(store) }
	cfg := jetstream.DefaultConfig()
	cfg.OnDisk = srv.OnDisk
	if l.Log, err = jetstream.Open(ctx, nc, cfg); err != nil {
		l.stop()
		return bareLog{}, err
	}
	return l, nil
}

// ceiling measures the rate of the embedded log alone: a number of writers append the two frames of
// a no-op run, with the host's expectations.
func ceiling(ctx context.Context, dir string, durable bool, writers int, d time.Duration) (float64, error) {
	log, err := openLog(ctx, dir, durable)
	if err != nil {
		return 0, err
	}
	defer log.stop()
	end := time.Now().Add(d)
	frames, err := crowd(writers, func(w int) (int, error) {
		n := 0
		for ; time.Now().Before(end); n++ {
			if err := twoFrames(ctx, log.Log, fmt.Sprintf("run_%d_%d", w, n)); err != nil {
				return 0, err
			}
		}
		return 2 * n, nil
	})
	return float64(frames) / d.Seconds(), err
}

// crowd runs a number of writers concurrently and adds up their counts.
func crowd(writers int, work func(w int) (int, error)) (int, error) {
	var (
		done   atomic.Int64
		failed atomic.Pointer[error]
		wg     sync.WaitGroup
	)
	for w := range writers {
		wg.Go(func() {
			n, err := work(w)
			if err != nil {
				failed.Store(&err)
			}
			done.Add(int64(n))
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return int(done.Load()), nil
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
