package jetstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// maxMarkTries limits the repetitions of Mark when other writers append to the run.
const maxMarkTries = 8

// Mark marks a run as erased; see runlog.Eraser.
func (l *Log) Mark(ctx context.Context, run subject.Run, why frame.Cause) (marked bool, err error) {
	if !natslink.Erasable(l.leader) {
		return false, runlog.ErrRemovalDenied
	}
	for range maxMarkTries {
		if marked, err = l.tryMark(ctx, run, why); !errors.Is(err, runlog.ErrConflict) {
			return marked, err
		}
	}
	return false, fmt.Errorf("%w: mark run %s as erased: other writers append to it", runlog.ErrUnavailable, run.RunID)
}

func (l *Log) tryMark(ctx context.Context, run subject.Run, why frame.Cause) (marked bool, err error) {
	raws, err := l.raw(ctx, run)
	if err != nil {
		return false, err
	}
	if len(raws) == 0 {
		return false, fmt.Errorf("%w: %s", runlog.ErrNotFound, run.RunID)
	}
	last := raws[len(raws)-1]
	at, kind, err := subject.Parse(last.Subject)
	switch {
	case err != nil:
		return false, fmt.Errorf("%w: %w", frame.ErrDamaged, err)
	case kind == subject.Erase:
		return false, l.Keep(ctx, last.Sequence)
	case kind != subject.End && kind != subject.Seal && !damaged(raws):
		return false, fmt.Errorf("%w: %s", runlog.ErrActive, run.RunID)
	}
	var positions []uint64
	for _, m := range raws {
		if kind != subject.Seal { // otherwise that frame lists them, and stays
			positions = append(positions, m.Sequence)
		}
	}
	// A damaged frame may have no readable headers. The chain of an erased run is not checked.
	end, _ := strconv.Atoi(last.Header.Get(frame.HeaderLast))
	head := frame.Head{Pos: last.Sequence, Hash: last.Header.Get(frame.HeaderHash), Next: max(end, -1) + 1}
	_, err = l.Append(ctx, frame.NewErase(at, head, positions, why), last.Sequence)
	return err == nil, err
}

// damaged reports whether a run cannot be loaded, so that no dispatcher can end it.
func damaged(raws []*js.RawStreamMsg) bool {
	var c frame.Chain
	for _, m := range raws {
		f, err := parseRaw(m)
		if err != nil || c.Follow(f) != nil {
			return true
		}
	}
	return false
}

// raw reads the messages of a run from the leader without parsing them.
func (l *Log) raw(ctx context.Context, run subject.Run) (out []*js.RawStreamMsg, err error) {
	for next := uint64(1); ; {
		m, err := l.getOfLeader(ctx, next, run.All())
		if errors.Is(err, js.ErrMsgNotFound) {
			return out, nil
		}
		if err != nil {
			return nil, readError("frames", run, err)
		}
		out, next = append(out, m), m.Sequence+1
	}
}

// kindOf returns the kind of a message; empty if it is no frame.
func kindOf(m *js.RawStreamMsg) subject.Kind {
	_, kind, _ := subject.Parse(m.Subject)
	return kind
}

// isMark reports whether a message explains removed frames. It stays.
func isMark(m *js.RawStreamMsg) bool {
	kind := kindOf(m)
	return kind == subject.Erase || kind == subject.Seal
}

// Remaining returns the frames that are still there; see runlog.Eraser.
func (l *Log) Remaining(ctx context.Context, mark *frame.Frame) ([]*frame.Frame, error) {
	raws, err := l.raw(ctx, mark.Run)
	var out []*frame.Frame
	for _, m := range raws {
		if f, perr := parseRaw(m); perr == nil && !isMark(m) {
			out = append(out, f)
		}
	}
	return out, err
}

// Purge removes the frames of a marked run; see runlog.Eraser.
func (l *Log) Purge(ctx context.Context, mark *frame.Frame) error {
	raws, err := l.raw(ctx, mark.Run)
	if err != nil {
		return err
	}
	remove := natslink.EraseMessage
	if of, err := mark.Erasure(); err == nil && of.Cause == frame.Expired {
		remove = natslink.DropMessage
	}
	var positions []uint64
	for _, m := range raws {
		if !isMark(m) {
			positions = append(positions, m.Sequence)
		}
	}
	return l.remove(ctx, mark.Run, positions, remove)
}

// remove removes frames of a run, the last one first.
func (l *Log) remove(ctx context.Context, run subject.Run, positions []uint64, by func(context.Context, js.Stream, uint64) error) error {
	for _, pos := range slices.Backward(positions) {
		err := l.link.Ask(ctx, func(ctx context.Context) error { return by(ctx, l.leader, pos) })
		switch {
		case errors.Is(err, natslink.ErrDenied):
			return fmt.Errorf("%w: %w", runlog.ErrRemovalDenied, err)
		case err != nil:
			return fmt.Errorf("%w: remove the frames of run %s: %w", runlog.ErrUnavailable, run.RunID, err)
		}
	}
	return l.Keep(ctx, 0)
}

const (
	// erasuresName is the durable consumer that all processes share.
	erasuresName = "erasures"
	// erasureWait is how long after a crash another process continues an erasure.
	erasureWait = 15 * time.Second
)

// Erasures delivers erasures; see runlog.Eraser.
func (l *Log) Erasures(ctx context.Context, handle func(context.Context, *frame.Frame) error) error {
	c, err := natslink.Ensure(ctx, func(ctx context.Context) (js.Consumer, error) {
		return l.js.CreateOrUpdateConsumer(ctx, subject.Stream, js.ConsumerConfig{
			Durable:       erasuresName,
			Description:   "hands erasures of runs to dispatchers",
			FilterSubject: subject.Erasures,
			DeliverPolicy: js.DeliverAllPolicy,
			AckPolicy:     js.AckExplicitPolicy,
			AckWait:       erasureWait,
			MaxDeliver:    -1,
		})
	})
	if err != nil {
		return fmt.Errorf("%w: erasures: %w", runlog.ErrUnavailable, err)
	}
	in, err := c.Messages(js.PullMaxMessages(1))
	if err != nil {
		return fmt.Errorf("%w: erasures: %w", runlog.ErrUnavailable, err)
	}
	defer in.Stop()
	defer context.AfterFunc(ctx, in.Stop)()
	for {
		m, err := in.Next()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%w: next erasure: %w", runlog.ErrUnavailable, err)
		}
		l.carryOut(ctx, m, handle)
	}
}

// carryOut handles one erasure and extends its lease until it returns. If the acknowledgement is
// lost, the erasure is delivered again.
func (l *Log) carryOut(ctx context.Context, m js.Msg, handle func(context.Context, *frame.Frame) error) {
	run, _, err := subject.Parse(m.Subject())
	meta, merr := m.Metadata()
	if err != nil || merr != nil { // no frame of this host
		_ = m.Term()
		return
	}
	extend := time.NewTicker(erasureWait / 3)
	defer extend.Stop()
	done := make(chan error, 1)
	go func() {
		done <- handle(ctx, &frame.Frame{
			Run: run, Kind: subject.Erase, Pos: meta.Sequence.Stream, Stored: meta.Timestamp, Body: m.Data(),
		})
	}()
	for {
		select {
		case <-extend.C:
			_ = m.InProgress()
		case err := <-done:
			switch {
			case err == nil:
				_ = m.Ack()
			case ctx.Err() != nil:
				_ = m.Nak() // another process continues immediately
			default:
				_ = m.NakWithDelay(runlog.RetryAfter(l.cfg.RetryDelay, boundedTries(meta.NumDelivered)))
			}
			return
		}
	}
}
