package jetstream

import (
	"context"
	"errors"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// Run returns all frames of a run; see runlog.Reader. A server that was killed may have truncated
// its file and deliver the rest without an error. Frames that look damaged are therefore read from
// the stream's leader before they count as damaged.
func (l *Log) Run(ctx context.Context, run subject.Run) ([]*frame.Frame, error) {
	frames, err := l.all(ctx, run)
	if err == nil {
		err = linked(frames)
	}
	if l.alone || !errors.Is(err, frame.ErrDamaged) {
		return l.keptAll(ctx, frames, err)
	}
	damage := err
	start, err := first(ctx, run, l.getOfLeader)
	if errors.Is(err, runlog.ErrNotFound) { // the leader has lost even that
		return nil, damage
	}
	if err != nil {
		return nil, err
	}
	rest, err := from(ctx, start.Run, start.Pos+1, 0, l.getOfLeader)
	return append([]*frame.Frame{start}, rest...), err
}

// linked checks that no frame of a run is missing before its last.
func linked(frames []*frame.Frame) error {
	var c frame.Chain
	for _, f := range frames {
		if err := c.Follow(f); err != nil {
			return err
		}
	}
	return nil
}

// getter reads the first message of a subject at a position or later.
type getter func(ctx context.Context, pos uint64, subj string) (*js.RawStreamMsg, error)

// getOfLeader costs more than a read from any server.
func (l *Log) getOfLeader(ctx context.Context, pos uint64, subj string) (raw *js.RawStreamMsg, err error) {
	ctx, cancel := l.patient(ctx)
	defer cancel()
	err = l.link.Ask(ctx, func(ctx context.Context) (err error) {
		raw, err = l.leader.GetMsg(ctx, pos, js.WithGetMsgSubject(subj))
		return err
	})
	return raw, err
}
