package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
// queue. Close it when done.
type Queue struct {
	cfg      Config
	consumer js.Consumer
	msgs     js.MessagesContext // nil: each Next pulls one run
	closed   chan struct{}
	once     sync.Once
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
			MaxDeliver:     -1, // a run is never given up by the queue; the run loop decides
		})
	})
	if err != nil {
		return nil, fmt.Errorf("open dispatch queue: %w", err)
	}
	if l.cfg.Prefetch == 1 {
		return &Queue{cfg: l.cfg, consumer: c, closed: make(chan struct{})}, nil
	}
	msgs, err := c.Messages(js.PullMaxMessagesWithBytesLimit(l.cfg.Prefetch, natslink.MaxPull(l.js.Conn())))
	if err != nil {
		return nil, fmt.Errorf("open dispatch queue: %w", err)
	}
	return &Queue{cfg: l.cfg, consumer: c, msgs: msgs}, nil
}

// Close stops handing out runs; those not begun go to another dispatcher.
func (q *Queue) Close() {
	if q.msgs == nil {
		q.once.Do(func() { close(q.closed) })
		return
	}
	q.msgs.Stop()
}

// pull fetches the next run. Without prefetch it asks for one: nothing waits in this process that
// another dispatcher has room for. (The client's iterator stalls with a buffer of one.)
func (q *Queue) pull(ctx context.Context) (js.Msg, error) {
	if q.msgs != nil {
		return q.msgs.Next(js.NextContext(ctx))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-q.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		msg, err := q.consumer.Next(js.FetchContext(ctx))
		select {
		case <-q.closed:
			return nil, js.ErrMsgIteratorClosed
		default:
		}
		if err == nil || ctx.Err() != nil || !errors.Is(err, nats.ErrTimeout) {
			return msg, err
		}
	}
}

// Next waits for a run; see runlog.Queue. What names no run is taken off the queue: to hand it
// out again would not mend it.
func (q *Queue) Next(ctx context.Context) (runlog.Delivery, error) {
	for {
		msg, err := q.pull(ctx)
		if err != nil {
			return nil, nextError(ctx, err)
		}
		d, err := q.delivery(msg)
		if err == nil {
			return d, nil
		}
		if terr := msg.TermWithReason(err.Error()); terr != nil {
			return nil, fmt.Errorf("%w: drop damaged frame: %w", runlog.ErrUnavailable, terr)
		}
	}
}

// Depth counts what is in the queue; see runlog.Queue.
func (q *Queue) Depth(ctx context.Context) (runlog.Depth, error) {
	i, err := q.consumer.Info(ctx)
	if err != nil {
		return runlog.Depth{}, fmt.Errorf("%w: ask the dispatch queue: %w", runlog.ErrUnavailable, err)
	}
	return runlog.Depth{Waiting: int(i.NumPending), Held: i.NumAckPending, HandedOut: i.Delivered.Consumer}, nil //nolint:gosec // G115: no log has as many
}

func nextError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, js.ErrMsgIteratorClosed) {
		return context.Canceled
	}
	return fmt.Errorf("%w: next run: %w", runlog.ErrUnavailable, err)
}

func (q *Queue) delivery(msg js.Msg) (*delivery, error) {
	meta, err := msg.Metadata()
	if err != nil {
		return nil, fmt.Errorf("read delivery: %w", err)
	}
	again := meta.NumDelivered > 1
	f, err := frame.Parse(msg.Subject(), msg.Headers().Get, msg.Data())
	if err == nil {
		err = f.Verify()
	}
	if err != nil { // its run's log tells, of which another server may have a whole copy
		run, kind, err := subject.Parse(msg.Subject())
		if err != nil {
			return nil, err
		}
		f, again = &frame.Frame{Run: run, Kind: kind}, true
	}
	f.Pos, f.Stored = meta.Sequence.Stream, meta.Timestamp
	return &delivery{msg: msg, frame: f, redelivered: again, delay: q.cfg.RetryDelay, tries: meta.NumDelivered}, nil
}

type delivery struct {
	msg         js.Msg
	frame       *frame.Frame
	redelivered bool
	delay       time.Duration
	tries       uint64
}

func (d *delivery) Frame() *frame.Frame { return d.frame }
func (d *delivery) Redelivered() bool   { return d.redelivered }
func (d *delivery) Extend() error       { return d.msg.InProgress() }
func (d *delivery) Ack() error          { return d.msg.Ack() }

func (d *delivery) Retry() error {
	return d.msg.NakWithDelay(heldBack(d.delay, d.tries))
}

// heldBack is how long a run waits for its next try: longer with every one, up to eight times the
// delay. What is away is back after seconds, mostly; and a run has a time limit, of which
// some tries in a row that fail for different reasons must not take the most.
func heldBack(delay time.Duration, tries uint64) time.Duration {
	return delay << min(tries-1, 3)
}
