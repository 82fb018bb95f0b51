package jetstream

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// queueName is the durable consumer all dispatchers share. Its lag is what an
// autoscaler reads.
const queueName = "dispatchers"

// Queue hands out runs from the log's start and wake frames: the log is the
// queue. Close it when done. Next and Want are for one goroutine.
type Queue struct {
	cfg      Config
	consumer js.Consumer
	pull     *puller
}

// Queue opens the dispatchers' end of the log.
func (l *Log) Queue(ctx context.Context) (*Queue, error) {
	c, err := natslink.Ensure(ctx, func(ctx context.Context) (js.Consumer, error) {
		return l.stream.CreateOrUpdateConsumer(ctx, js.ConsumerConfig{
			Durable:        queueName,
			Description:    "hands runs to dispatchers",
			FilterSubjects: subject.Queue(),
			DeliverPolicy:  js.DeliverAllPolicy,
			AckPolicy:      js.AckExplicitPolicy,
			AckWait:        l.cfg.AckWait,
			MaxAckPending:  l.cfg.MaxPending,
			MaxDeliver:     -1, // the run loop decides when to give up, not the queue
		})
	})
	if err != nil {
		return nil, fmt.Errorf("open dispatch queue: %w", err)
	}
	pull, err := newPuller(l.js.Conn(), subject.Stream, queueName, l.cfg.AckWait)
	if err != nil {
		return nil, fmt.Errorf("open dispatch queue: %w", err)
	}
	return &Queue{cfg: l.cfg, consumer: c, pull: pull}, nil
}

// Want sets how many runs may be fetched ahead of Next; see runlog.Queue.
func (q *Queue) Want(n int) { q.pull.want = max(1, n) }

// Close stops fetching and gives back the runs that were fetched and not returned by Next, so
// that another dispatcher gets them immediately.
func (q *Queue) Close() {
	q.pull.close(func(m *nats.Msg) {
		_ = m.Nak() // a lost one is handed out again after AckWait
	})
}

// Next waits for a run; see runlog.Queue. A message that names no run is terminated: redelivery
// cannot mend it.
func (q *Queue) Next(ctx context.Context) (runlog.Delivery, error) {
	for {
		msg, err := q.pull.next(ctx)
		if err != nil {
			return nil, nextError(ctx, err)
		}
		d, err := q.delivery(msg)
		if err == nil {
			return d, nil
		}
		if terr := msg.Term(); terr != nil {
			return nil, fmt.Errorf("%w: drop damaged frame (%w): %w", runlog.ErrUnavailable, err, terr)
		}
	}
}

// Depth counts what is in the queue; see runlog.Queue.
func (q *Queue) Depth(ctx context.Context) (runlog.Depth, error) {
	i, err := q.consumer.Info(ctx)
	if err != nil {
		return runlog.Depth{}, fmt.Errorf("%w: ask the dispatch queue: %w", runlog.ErrUnavailable, err)
	}
	return runlog.Depth{Waiting: int(i.NumPending), InDelivery: i.NumAckPending, Fetched: q.pull.fetched(), HandedOut: i.Delivered.Consumer, Delivered: i.Delivered.Stream}, nil //nolint:gosec // G115: no log has as many
}

func nextError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, errPullerClosed) {
		return context.Canceled
	}
	return fmt.Errorf("%w: next run: %w", runlog.ErrUnavailable, err)
}

func (q *Queue) delivery(msg *nats.Msg) (*delivery, error) {
	meta, err := msg.Metadata()
	if err != nil {
		return nil, fmt.Errorf("read delivery: %w", err)
	}
	again := meta.NumDelivered > 1
	f, err := frame.Parse(msg.Subject, msg.Header.Get, msg.Data)
	if err == nil {
		err = f.Verify()
	}
	if err != nil { // the run's log decides; another server may have a whole copy
		run, kind, err := subject.Parse(msg.Subject)
		if err != nil {
			return nil, err
		}
		f, again = &frame.Frame{Run: run, Kind: kind}, true
	}
	f.Pos, f.Stored = meta.Sequence.Stream, meta.Timestamp
	return &delivery{msg: msg, frame: f, redelivered: again, delay: q.cfg.RetryDelay, tries: meta.NumDelivered}, nil
}

type delivery struct {
	msg         *nats.Msg
	frame       *frame.Frame
	redelivered bool
	delay       time.Duration
	tries       uint64
}

func (d *delivery) Frame() *frame.Frame { return d.frame }
func (d *delivery) Redelivered() bool   { return d.redelivered }
func (d *delivery) Tries() int          { return boundedTries(d.tries) }
func (d *delivery) Extend() error       { return d.msg.InProgress() }
func (d *delivery) Ack() error          { return d.msg.Ack() }
func (d *delivery) Return() error       { return d.msg.Nak() }

// boundedTries returns a number of deliveries as an int.
func boundedTries(n uint64) int { return int(min(n, math.MaxInt32)) } //nolint:gosec // G115: bounded

func (d *delivery) Retry() error {
	return d.msg.NakWithDelay(runlog.RetryAfter(d.delay, d.Tries()))
}
