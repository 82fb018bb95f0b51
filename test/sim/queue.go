package sim

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// queue delivers runs to dispatchers at least once, mostly in order. It follows the rules of the
// durable queue. A delivery not ended within AckWait is delivered again, even if it was extended
// after it lapsed. Any holder of the delivery may end it. Only the scheduler uses it.
type queue struct {
	w     *World
	items []*item // unacknowledged, by position
}

type item struct {
	frame *frame.Frame
	tries int
	// by is the process of the last delivery.
	by *process
	// free is the earliest time of the next delivery.
	free time.Time
}

// retryDelay is the durable queue's pause after a first Retry.
const retryDelay = 250 * time.Millisecond

func newQueue(w *World) *queue { return &queue{w: w} }

// offer enqueues a frame that schedules its run.
func (q *queue) offer(f *frame.Frame) {
	if f.Kind == subject.Start || f.Kind == subject.Wake {
		q.items = append(q.items, &item{frame: f, free: time.Now()})
	}
}

func (q *queue) empty() bool { return len(q.items) == 0 }

// String lists what is not acknowledged.
func (q *queue) String() string {
	var s []string
	for _, it := range q.items {
		s = append(s, fmt.Sprintf("%s %s at %d, tried %d times", it.frame.Run.RunID, it.frame.Kind, it.frame.Pos, it.tries))
	}
	return fmt.Sprint(s)
}

// free returns when the next run can be delivered.
func (q *queue) free() time.Time {
	first := time.Now().Add(24 * time.Hour)
	for _, it := range q.items {
		if it.free.Before(first) {
			first = it.free
		}
	}
	return first
}

// take removes and returns a run: mostly the oldest one.
func (q *queue) take() *item {
	var free []*item
	for _, it := range q.items {
		if !it.free.After(time.Now()) {
			free = append(free, it)
		}
	}
	it := free[0]
	if q.w.chance.IntN(4) == 0 {
		it = free[q.w.chance.IntN(len(free))]
	}
	it.tries++
	it.free = time.Now().Add(q.w.ackWait)
	return it
}

// expire makes a delivered run available again, as if its extensions had been late.
func (q *queue) expire() {
	if len(q.items) > 0 {
		q.items[q.w.chance.IntN(len(q.items))].free = time.Now()
	}
}

// drop removes a run from the queue. Like the durable queue, it ignores other deliveries of it.
func (q *queue) drop(it *item) {
	q.items = slices.DeleteFunc(q.items, func(i *item) bool { return i == it })
}

// queuePort is a process's access to the queue. It fetches ahead as many runs as the process wants.
type queuePort struct {
	p *process

	mu      sync.Mutex // guards the fields below: a desk closes the queue while fetching
	want    int
	fetched []*delivery
}

// Want sets how many runs are fetched at a time; see runlog.Queue.
func (q *queuePort) Want(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.want = n; q.p.w.prefetch > 0 {
		q.want = q.p.w.prefetch
	}
}

// Close returns the fetched runs to the queue; see runlog.Queue.
func (q *queuePort) Close() {
	q.mu.Lock()
	fetched := q.fetched
	q.fetched = nil
	q.mu.Unlock()
	for _, d := range fetched {
		_ = d.Return() // if this fails, the queue delivers it again later
	}
}

// apart is the time between the hand-outs of runs that were fetched together. Sessions that begin at
// one instant run in any order, which would not follow from the seed.
const apart = time.Microsecond

// Next waits for a run; see runlog.Queue.
func (q *queuePort) Next(ctx context.Context) (runlog.Delivery, error) {
	q.mu.Lock()
	if len(q.fetched) > 0 {
		d := q.fetched[0]
		q.fetched = q.fetched[1:]
		q.mu.Unlock()
		q.p.w.pass(apart)
		return d, nil
	}
	want := q.want
	q.mu.Unlock()
	var more []*delivery
	d := &delivery{p: q.p}
	err := q.p.wait(ctx, &call{at: atNext, ready: q.p.w.queue.free, perform: func() error {
		it := q.p.w.queue.take()
		d.item, d.tries, it.by = it, it.tries, q.p
		q.p.w.say("   %s receives %s, %s at %d", q.p.name, it.frame.Run.RunID, it.frame.Kind, it.frame.Pos)
		for len(more)+1 < want && !q.p.w.queue.free().After(time.Now()) {
			it := q.p.w.queue.take()
			it.by = q.p
			more = append(more, &delivery{p: q.p, item: it, tries: it.tries})
			q.p.w.say("   %s fetches %s, %s at %d", q.p.name, it.frame.Run.RunID, it.frame.Kind, it.frame.Pos)
		}
		return nil
	}})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	q.fetched = append(q.fetched, more...)
	q.mu.Unlock()
	return d, nil
}

// Depth counts the runs in the queue; see runlog.Queue.
func (q *queuePort) Depth(ctx context.Context) (d runlog.Depth, err error) {
	if q.p.w.desk != "" { // with a desk, every waiting run is fetched
		waits := 0
		err = q.p.call(ctx, atDepth, "", func() error {
			for _, it := range q.p.w.queue.items {
				if !it.free.After(time.Now()) {
					waits++
				}
			}
			return nil
		})
		if err != nil {
			return runlog.Depth{}, err
		}
		return runlog.Depth{Waiting: waits}, nil
	}
	return runlog.Depth{Waiting: len(q.p.w.queue.items)}, nil
}

type delivery struct {
	p     *process
	item  *item
	tries int
}

func (d *delivery) Frame() *frame.Frame {
	f := *d.item.frame
	return &f
}

func (d *delivery) Redelivered() bool { return d.tries > 1 }
func (d *delivery) Tries() int        { return d.tries }

func (d *delivery) Extend() error {
	return d.send(atExtend, func() error {
		if slices.Contains(d.p.w.queue.items, d.item) {
			d.item.free = time.Now().Add(d.p.w.ackWait)
		}
		return nil
	})
}

func (d *delivery) Ack() error {
	return d.send(atAck, func() error {
		d.p.w.queue.drop(d.item)
		return nil
	})
}

func (d *delivery) Retry() error {
	return d.send(atRetry, func() error {
		d.item.free = time.Now().Add(retryDelay << min(d.item.tries-1, 3))
		return nil
	})
}

func (d *delivery) Return() error {
	return d.send(atRetry, func() error {
		d.item.free = time.Now()
		return nil
	})
}

func (d *delivery) send(at boundary, perform func() error) error {
	f := d.item.frame
	return d.p.call(d.p.ctx, at, fmt.Sprintf("%s at %d", f.Run.RunID, f.Pos), perform)
}
