package jetstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// After returns later frames of a run; see runlog.Reader.
func (l *Log) After(ctx context.Context, run subject.Run, pos uint64) ([]*frame.Frame, error) {
	frames, err := from(ctx, run, pos+1, 0, l.get)
	return l.keptAll(ctx, frames, err)
}

// from reads up to limit frames of a run from position pos on, and at most a page; a limit of 0
// means all.
func from(ctx context.Context, run subject.Run, pos uint64, limit int, get getter) ([]*frame.Frame, error) {
	var out []*frame.Frame
	for size := 0; limit == 0 || len(out) < limit && size < runlog.PageBytes; {
		raw, err := get(ctx, pos, run.All())
		if errors.Is(err, js.ErrMsgNotFound) {
			return out, nil
		}
		if err != nil {
			return nil, readError("frame", run, err)
		}
		f, err := parseRaw(raw)
		if err != nil {
			return nil, err
		}
		if f.Kind == subject.Erase { // the run's frames are being removed, or are
			return out, nil
		}
		if f.Kind == subject.Seal {
			return nil, sealed(run)
		}
		out, size = append(out, f), size+len(f.Body)
		if f.Kind == subject.End { // nothing follows an end
			return out, nil
		}
		pos = f.Pos + 1
	}
	return out, nil
}

// get reads from any server, because reading from the leader would concentrate the load of all
// hosts on one server. Records on a server are final, but it may be behind: absence is confirmed by
// the leader.
func (l *Log) get(ctx context.Context, pos uint64, subj string) (raw *js.RawStreamMsg, err error) {
	ctx, cancel := l.patient(ctx)
	defer cancel()
	from := l.stream
	read := func(ctx context.Context) (err error) {
		raw, err = from.GetMsg(ctx, pos, js.WithGetMsgSubject(subj))
		return err
	}
	err = l.link.Ask(ctx, read)
	if errors.Is(err, js.ErrMsgNotFound) && !l.alone {
		from = l.leader
		err = l.link.Ask(ctx, read)
	}
	return raw, err
}

// newest returns the stream for reading the last frame of a run.
func (l *Log) newest() js.Stream {
	if l.alone {
		return l.stream
	}
	return l.leader
}

// patient limits the attempts for one frame. It ends before the caller's deadline, so that the
// caller gets the cause and not only a timeout.
func (l *Log) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	d := l.cfg.Patience
	if d == 0 {
		return ctx, func() {}
	}
	if end, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(end)*3/4)
	}
	return context.WithTimeout(ctx, d)
}

func parseRaw(raw *js.RawStreamMsg) (*frame.Frame, error) {
	f, err := frame.Parse(raw.Subject, raw.Header.Get, raw.Data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", frame.ErrDamaged, err)
	}
	f.Pos, f.Stored = raw.Sequence, raw.Time
	return f, f.Verify()
}

func readError(what string, run subject.Run, err error) error {
	if errors.Is(err, js.ErrMsgNotFound) {
		return fmt.Errorf("%w: %s", runlog.ErrNotFound, run.RunID)
	}
	return fmt.Errorf("%w: read %s of run %s: %w", runlog.ErrUnavailable, what, run.RunID, err)
}

// isTransient reports whether a retry may succeed. A write on a broken connection, before the
// client has noticed, fails like the connection.
func isTransient(err error) bool {
	if _, broken := errors.AsType[net.Error](err); broken || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, io.EOF) {
		return true
	}
	return errors.Is(err, natslink.ErrLost) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, nats.ErrNoResponders) || errors.Is(err, js.ErrNoStreamResponse) ||
		errors.Is(err, nats.ErrConnectionReconnecting) || errors.Is(err, nats.ErrDisconnected) ||
		errors.Is(err, nats.ErrReconnectBufExceeded) // the connection buffers nothing for later
}
