package jetstream

import (
	"context"
	"errors"
	"fmt"

	js "github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"

	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

const (
	// followBuffer is the number of frames buffered for the next batch.
	followBuffer = 4096
	// followBatch limits a batch, so that a reader that is far behind commits in steps.
	followBatch = 1024
	// followBytes limits the bytes of frames buffered for a reader, including its batch:
	// followBuffer frames of maximum size would exceed the memory.
	followBytes = runlog.MaxFrameBytes
)

// Follow reads the log in order; see runlog.Follower. It uses an ordered consumer: the server
// stores no position for the reader, which stores its own.
func (l *Log) Follow(ctx context.Context, pos uint64, handle func([]*frame.Frame) error, damaged func(subject.Run, uint64, error)) error {
	c, end, err := natslink.Reader(ctx, l.js.Conn(), l.stream, js.OrderedConsumerConfig{
		FilterSubjects: []string{subject.All},
		DeliverPolicy:  js.DeliverByStartSequencePolicy,
		OptStartSeq:    pos + 1,
	})
	if err != nil {
		return fmt.Errorf("%w: follow from %d: %w", runlog.ErrUnavailable, pos, err)
	}
	defer end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, room := make(chan js.Msg, followBuffer), semaphore.NewWeighted(followBytes)
	run, err := c.Consume(func(m js.Msg) {
		if room.Acquire(ctx, weight(m)) != nil { // the reader has ended
			return
		}
		select {
		case in <- m:
		case <-ctx.Done():
		}
	}, js.PullMaxMessagesWithBytesLimit(followBatch, natslink.MaxPull(l.js.Conn())))
	if err != nil {
		return fmt.Errorf("%w: follow from %d: %w", runlog.ErrUnavailable, pos, err)
	}
	defer run.Stop()
	d := drain{
		next:    pos + 1,
		free:    room.Release,
		damaged: damaged,
		missing: func(from, to uint64) error { return l.missing(ctx, from, to) },
	}
	return d.run(ctx, in, run.Closed(), func(batch []*frame.Frame) error {
		end := batch[len(batch)-1].Pos
		if err := errors.Join(l.settled(ctx, end), l.join(ctx, end)); err != nil {
			return err
		}
		return handle(batch)
	})
}

// weight returns the part of followBytes that a message uses.
func weight(m js.Msg) int64 { return min(int64(len(m.Data())), followBytes) }

// missing handles positions that a server skipped. A server that has lost records delivers the rest
// without an error, so another server must be used, unless the leader lacks the records too. The
// leader is asked for its next record, which is one answer however many are missing.
func (l *Log) missing(ctx context.Context, from, to uint64) error {
	var next *js.RawStreamMsg
	err := l.link.Ask(ctx, func(ctx context.Context) (err error) {
		next, err = l.leader.GetMsg(ctx, from, js.WithGetMsgSubject(subject.All))
		return err
	})
	switch {
	case err != nil: // also if the leader has nothing yet at these positions
		return fmt.Errorf("%w: the leader, asked for what is at %d to %d: %w", runlog.ErrUnavailable, from, to, err)
	case next.Sequence <= to:
		return fmt.Errorf("%w: a server that was asked has lost what is at %d to %d", runlog.ErrUnavailable, from, to)
	}
	return nil
}

// drain forwards arriving messages.
type drain struct {
	next    uint64                                       // the expected position
	free    func(bytes int64)                            // called when buffered bytes are released
	damaged func(run subject.Run, pos uint64, err error) // called for unreadable frames
	missing func(from, to uint64) error                  // called for skipped positions
}

// run passes arrived messages to handle, as one batch each time.
func (d *drain) run(ctx context.Context, in <-chan js.Msg, closed <-chan struct{}, handle func([]*frame.Frame) error) error {
	for {
		var (
			batch []*frame.Frame
			err   error
			held  int64
		)
		add := func(m js.Msg) {
			held += weight(m)
			batch, err = d.add(batch, m)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-closed:
			return fmt.Errorf("%w: consumer closed", runlog.ErrUnavailable)
		case m := <-in:
			add(m)
		}
		for more := true; more && err == nil && len(batch) < followBatch; {
			select {
			case m := <-in:
				add(m)
			default:
				more = false
			}
		}
		if err != nil {
			return err // the frames before it are delivered again
		}
		if len(batch) > 0 {
			if err := handle(batch); err != nil {
				return err
			}
		}
		d.free(held)
	}
}

func (d *drain) add(batch []*frame.Frame, m js.Msg) ([]*frame.Frame, error) {
	run, _, _ := subject.Parse(m.Subject()) // zero if it is damaged
	meta, err := m.Metadata()
	if err != nil {
		d.damaged(run, 0, err)
		return batch, nil
	}
	pos := meta.Sequence.Stream
	if pos > d.next {
		if err := d.missing(d.next, pos-1); err != nil {
			return batch, err
		}
	}
	d.next = pos + 1
	f, err := frame.Parse(m.Subject(), m.Headers().Get, m.Data())
	if err != nil {
		d.damaged(run, pos, err)
		return batch, nil
	}
	f.Pos, f.Stored = pos, meta.Timestamp
	if err := f.Verify(); err != nil {
		d.damaged(run, f.Pos, err)
		return batch, nil
	}
	return append(batch, f), nil
}

// End returns the position of the log's last frame; see runlog.Follower.
func (l *Log) End(ctx context.Context) (uint64, error) {
	state, err := l.state(ctx)
	return state.LastSeq, err
}

// Newest returns the position of the last frame that is there; see runlog.Follower.
func (l *Log) Newest(ctx context.Context) (uint64, error) {
	state, err := l.state(ctx)
	// The mark of a run is behind its frames and stays, so removed frames are never the last.
	if err != nil || lost(state) <= l.erased.frames() {
		return state.LastSeq, err
	}
	var last *js.RawStreamMsg
	err = l.link.Ask(ctx, func(ctx context.Context) (err error) {
		last, err = l.newest().GetLastMsgForSubject(ctx, subject.All)
		return err
	})
	switch {
	case errors.Is(err, js.ErrMsgNotFound):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("%w: newest frame: %w", runlog.ErrUnavailable, err)
	}
	return last.Sequence, nil
}

func (l *Log) state(ctx context.Context) (js.StreamState, error) {
	var info *js.StreamInfo
	err := l.link.Ask(ctx, func(ctx context.Context) (err error) {
		info, err = l.stream.Info(ctx)
		return err
	})
	if err != nil {
		return js.StreamState{}, fmt.Errorf("%w: end of log: %w", runlog.ErrUnavailable, err)
	}
	return info.State, nil
}
