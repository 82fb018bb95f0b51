package jetstream

import (
	"context"
	"errors"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// First returns the frame of the run's record; see runlog.Pager.
func (l *Log) First(ctx context.Context, run subject.Run) (*frame.Frame, error) {
	f, err := first(ctx, run, l.get)
	if err != nil {
		return nil, err
	}
	return f, l.Keep(ctx, f.Pos)
}

func first(ctx context.Context, run subject.Run, get getter) (*frame.Frame, error) {
	raw, err := get(ctx, 1, run.Frame(subject.Start))
	if errors.Is(err, js.ErrMsgNotFound) {
		raw, err = get(ctx, 1, run.Frame(subject.Open))
	}
	if err != nil {
		return nil, readError("first frame", run, err)
	}
	return parseRaw(raw)
}

// Page returns some later frames of a run; see runlog.Pager.
func (l *Log) Page(ctx context.Context, run subject.Run, pos uint64, n int) ([]*frame.Frame, error) {
	frames, err := from(ctx, run, pos+1, n, l.get)
	return l.keptAll(ctx, frames, err)
}
