package jetstream

import (
	"context"
	"errors"
	"fmt"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// First returns the frame of the run's record; see runlog.Pager.
func (l *Log) First(ctx context.Context, run subject.Run) (*frame.Frame, error) {
	f, err := first(ctx, run, l.get)
	if errors.Is(err, runlog.ErrNotFound) {
		if _, lerr := l.Last(ctx, run); errors.Is(lerr, runlog.ErrSealed) {
			return nil, lerr
		}
	}
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

// TenantPage returns some frames of a tenant; see runlog.TenantPager. It reads from the leader: a
// server that has lost a record returns the one after it.
func (l *Log) TenantPage(ctx context.Context, tenant string, after, upTo uint64, n int, damaged runlog.Damaged) ([]*frame.Frame, uint64, error) {
	var out []*frame.Frame
	pos := after
	for size := 0; len(out) < n && size < runlog.PageBytes; {
		raw, err := l.getOfLeader(ctx, pos+1, subject.Tenant(tenant))
		if errors.Is(err, js.ErrMsgNotFound) || err == nil && raw.Sequence > upTo {
			pos = upTo
			break
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%w: read a tenant's frames after %d: %w", runlog.ErrUnavailable, pos, err)
		}
		pos = raw.Sequence
		f, err := parseRaw(raw)
		if err != nil {
			run, _, _ := subject.Parse(raw.Subject) // zero if it is damaged
			damaged(run, pos, err)
			continue
		}
		out, size = append(out, f), size+len(f.Body)
	}
	out, err := l.keptAll(ctx, out, nil)
	return out, pos, err
}
