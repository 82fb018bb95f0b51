package jetstream

import (
	"context"
	"fmt"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

const (
	// followBuffer is how many frames wait for the reader's next batch.
	followBuffer = 4096
	// followBatch bounds a batch, so that a reader far behind commits in steps.
	followBatch = 1024
)

// Follow reads the log in order; see runlog.Follower. It uses an ordered
// consumer: the server keeps no position for the reader, which stores its own.
func (l *Log) Follow(ctx context.Context, pos uint64, handle func([]*frame.Frame) error, damaged func(uint64, error)) error {
	c, err := l.stream.OrderedConsumer(ctx, js.OrderedConsumerConfig{
		FilterSubjects: []string{subject.All},
		DeliverPolicy:  js.DeliverByStartSequencePolicy,
		OptStartSeq:    pos + 1,
	})
	if err != nil {
		return fmt.Errorf("%w: follow from %d: %w", runlog.ErrUnavailable, pos, err)
	}
	in := make(chan js.Msg, followBuffer)
	run, err := c.Consume(func(m js.Msg) {
		select {
		case in <- m:
		case <-ctx.Done():
		}
	}, js.PullMaxMessages(followBatch))
	if err != nil {
		return fmt.Errorf("%w: follow from %d: %w", runlog.ErrUnavailable, pos, err)
	}
	defer run.Stop()
	return drain(ctx, in, run.Closed(), func(batch []*frame.Frame) error {
		if err := l.settled(ctx, batch[len(batch)-1].Pos); err != nil {
			return err
		}
		return handle(batch)
	}, damaged)
}

// drain hands over what has arrived, as one batch, each time there is something.
func drain(ctx context.Context, in <-chan js.Msg, closed <-chan struct{}, handle func([]*frame.Frame) error, damaged func(uint64, error)) error {
	for {
		var batch []*frame.Frame
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-closed:
			return fmt.Errorf("%w: consumer closed", runlog.ErrUnavailable)
		case m := <-in:
			batch = add(batch, m, damaged)
		}
		for more := true; more && len(batch) < followBatch; {
			select {
			case m := <-in:
				batch = add(batch, m, damaged)
			default:
				more = false
			}
		}
		if len(batch) == 0 {
			continue
		}
		if err := handle(batch); err != nil {
			return err
		}
	}
}

func add(batch []*frame.Frame, m js.Msg, damaged func(uint64, error)) []*frame.Frame {
	meta, err := m.Metadata()
	if err != nil {
		damaged(0, err)
		return batch
	}
	f, err := frame.Parse(m.Subject(), m.Headers().Get, m.Data())
	if err != nil {
		damaged(meta.Sequence.Stream, err)
		return batch
	}
	f.Pos, f.Stored = meta.Sequence.Stream, meta.Timestamp
	if err := f.Verify(); err != nil {
		damaged(f.Pos, err)
		return batch
	}
	return append(batch, f)
}

// End is the position of the log's last frame; see runlog.Follower.
func (l *Log) End(ctx context.Context) (uint64, error) {
	var info *js.StreamInfo
	err := l.link.Ask(ctx, func(ctx context.Context) (err error) {
		info, err = l.stream.Info(ctx)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("%w: end of log: %w", runlog.ErrUnavailable, err)
	}
	return info.State.LastSeq, nil
}
