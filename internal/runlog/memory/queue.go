package memory

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
)

// ErrEnded means that Ack or Retry was already called on the delivery.
var ErrEnded = errors.New("delivery has already ended")

// item is a frame in the queue.
type item struct {
	frame *frame.Frame
	tries int
}

// Next waits for a run; see runlog.Queue.
func (l *Log) Next(ctx context.Context) (runlog.Delivery, error) {
	for {
		d, changed := l.take()
		if d != nil {
			return d, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-changed:
		}
	}
}

// Want has no effect: nothing is fetched ahead.
func (l *Log) Want(int) {}

// Close has no effect: nothing is fetched ahead.
func (l *Log) Close() {}

// Depth counts what is in the queue; see runlog.Queue.
func (l *Log) Depth(context.Context) (runlog.Depth, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return runlog.Depth{Waiting: len(l.ready), InDelivery: len(l.held), HandedOut: l.handed, Delivered: l.delivered}, nil
}

func (l *Log) take() (runlog.Delivery, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ready) == 0 {
		return nil, l.changed
	}
	it := l.ready[0]
	l.ready = l.ready[1:]
	it.tries++
	l.handed++
	l.delivered = max(l.delivered, it.frame.Pos)
	l.held[it.frame.Pos] = it
	f := *it.frame
	return &delivery{log: l, item: it, frame: &f, tries: it.tries}, nil
}

// SetRetryDelay sets the delay of Retry.
func (l *Log) SetRetryDelay(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = d
}

// Expire redelivers every held run, as the durable log does after AckWait. It returns their number.
func (l *Log) Expire() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	positions := slices.Sorted(maps.Keys(l.held))
	for _, pos := range positions {
		l.requeue(l.held[pos])
	}
	return len(positions)
}

// Backlog counts the waiting and the held runs.
func (l *Log) Backlog() (waiting, held int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ready), len(l.held)
}

// requeue puts a held item back, unless it was acknowledged in the meantime. The caller holds mu.
func (l *Log) requeue(it *item) {
	if l.held[it.frame.Pos] != it {
		return
	}
	delete(l.held, it.frame.Pos)
	l.ready = append(l.ready, it)
	l.wake()
}

type delivery struct {
	log   *Log
	item  *item
	frame *frame.Frame
	tries int
	ended atomic.Bool
}

func (d *delivery) Frame() *frame.Frame { return d.frame }
func (d *delivery) Redelivered() bool   { return d.tries > 1 }
func (d *delivery) Tries() int          { return d.tries }

func (d *delivery) Extend() error {
	if d.ended.Load() {
		return ErrEnded
	}
	return nil
}

// Ack removes the run from the queue, also after a redelivery.
func (d *delivery) Ack() error {
	if d.ended.Swap(true) {
		return ErrEnded
	}
	l := d.log
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, d.frame.Pos)
	for i, it := range l.ready {
		if it == d.item {
			l.ready = append(l.ready[:i:i], l.ready[i+1:]...)
			break
		}
	}
	return nil
}

func (d *delivery) Retry() error { return d.requeue(true) }

func (d *delivery) Return() error { return d.requeue(false) }

func (d *delivery) requeue(delayed bool) error {
	if d.ended.Swap(true) {
		return ErrEnded
	}
	l := d.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if !delayed || l.delay <= 0 {
		l.requeue(d.item)
		return nil
	}
	time.AfterFunc(l.delay, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.requeue(d.item)
	})
	return nil
}
