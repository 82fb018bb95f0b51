package sim

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// logPort is a process's access to the run log.
type logPort struct{ p *process }

// clientCall marks calls that a process makes for a client, outside a session.
type clientCall struct{}

func inSession(ctx context.Context) bool { return ctx.Value(clientCall{}) == nil }

// Append stores a frame; see runlog.Appender.
func (l logPort) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	c, session := *f, inSession(ctx) // copy: a frame in flight does not change
	var pos uint64
	detail := fmt.Sprintf("%s %s %d..%d after %d %v %s", c.Run.RunID, c.Kind, c.First, c.Last, after, c.Types, short(c.Body))
	err := l.p.call(ctx, atAppend, detail, func() error {
		at, err := l.p.w.store(&c, after)
		if pos = at; err == nil && session && c.Kind != subject.Wake {
			l.p.markRead(c.Run.RunID, at)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	return pos, nil
}

// Run reads a run; see runlog.Reader.
func (l logPort) Run(ctx context.Context, r subject.Run) ([]*frame.Frame, error) {
	session := inSession(ctx)
	return l.read(ctx, r, "run", func() ([]*frame.Frame, error) {
		frames, err := l.p.w.log.Run(l.p.w.background(), r)
		if err == nil && session {
			l.p.markRead(r.RunID, frames[len(frames)-1].Pos)
		}
		return frames, err
	})
}

// After reads the rest of a run; see runlog.Reader.
func (l logPort) After(ctx context.Context, r subject.Run, pos uint64) ([]*frame.Frame, error) {
	return l.read(ctx, r, fmt.Sprintf("after %d", pos), func() ([]*frame.Frame, error) { return l.p.w.log.After(l.p.w.background(), r, pos) })
}

// First reads the frame of a run's record; see runlog.Reader.
func (l logPort) First(ctx context.Context, r subject.Run) (*frame.Frame, error) {
	return l.one(ctx, r, "first", l.p.w.log.First)
}

// Last reads the last frame of a run; see runlog.Reader.
func (l logPort) Last(ctx context.Context, r subject.Run) (*frame.Frame, error) {
	return l.one(ctx, r, "last", l.p.w.log.Last)
}

func (l logPort) one(ctx context.Context, r subject.Run, what string, of func(context.Context, subject.Run) (*frame.Frame, error)) (*frame.Frame, error) {
	frames, err := l.read(ctx, r, what, func() ([]*frame.Frame, error) {
		f, err := of(l.p.w.background(), r)
		return []*frame.Frame{f}, err
	})
	if err != nil {
		return nil, err
	}
	return frames[0], nil
}

func (l logPort) read(ctx context.Context, r subject.Run, what string, do func() ([]*frame.Frame, error)) ([]*frame.Frame, error) {
	var frames []*frame.Frame
	err := l.p.call(ctx, atRead, r.RunID+" "+what, func() (err error) {
		frames, err = do()
		return err
	})
	if err != nil {
		return nil, err
	}
	return frames, nil
}

// markRead records the position up to which a session of the process has read a run's log.
func (p *process) markRead(runID string, pos uint64) {
	if all := p.known[runID]; len(all) == 0 || all[len(all)-1].pos < pos {
		p.known[runID] = append(all, sight{pos, time.Now()})
	}
}

// sight records when a process had read a run's log up to a position.
type sight struct {
	pos uint64
	at  time.Time
}

// callBack is how long an effect's call may stay in flight after its session learned that it is
// useless.
const callBack = 10 * time.Millisecond

// knows reports whether a process had read a run's log up to a position early enough to decide its
// current call.
func (p *process) knows(runID string, pos uint64) bool {
	i := slices.IndexFunc(p.known[runID], func(s sight) bool { return s.pos >= pos })
	return i >= 0 && time.Since(p.known[runID][i].at) > callBack
}

func short(b []byte) string {
	sum := sha256.Sum256(b)
	return fmt.Sprintf("%x", sum[:4])
}

// store appends a frame to the log and checks the run's rules.
func (w *World) store(f *frame.Frame, after uint64) (uint64, error) {
	pos, err := w.log.Append(w.background(), f, after)
	if err != nil {
		return 0, err
	}
	h := w.runs[f.Run.RunID]
	if h != nil && pos <= h.last().Pos {
		return pos, nil // an earlier attempt stored it
	}
	stored := *f
	stored.Pos, stored.Stored = pos, time.Now()
	w.queue.offer(&stored)
	if err := w.record(&stored); err != nil {
		w.violate(fmt.Errorf("run %s: %w", f.Run.RunID, err))
	}
	return pos, nil
}

// recordsPort is a process's access to the store of small records. Watch updates arrive without
// delay.
type recordsPort struct {
	kv.Store
	p *process
}

// Get reads a record; see kv.Store.
func (r recordsPort) Get(ctx context.Context, key string) (kv.Entry, error) {
	var e kv.Entry
	err := r.p.call(ctx, atRecords, "get "+key, func() (err error) {
		e, err = r.Store.Get(r.p.w.background(), key)
		return err
	})
	if err != nil {
		return kv.Entry{}, recordsFault(err)
	}
	return e, nil
}

// Put writes a record; see kv.Store.
func (r recordsPort) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	return r.write(ctx, "put "+key, func() (uint64, error) { return r.Store.Put(r.p.w.background(), key, value) })
}

// Update writes a record at a revision; see kv.Store.
func (r recordsPort) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	detail := fmt.Sprintf("update %s at %d %s", key, revision, short(value))
	return r.write(ctx, detail, func() (uint64, error) { return r.Store.Update(r.p.w.background(), key, value, revision) })
}

func (r recordsPort) write(ctx context.Context, detail string, do func() (uint64, error)) (uint64, error) {
	var revision uint64
	err := r.p.call(ctx, atRecords, detail, func() (err error) {
		revision, err = do()
		return err
	})
	if err != nil {
		return 0, recordsFault(err)
	}
	return revision, nil
}

// recordsFault translates a fault into the port's errors.
func recordsFault(err error) error {
	if errors.Is(err, runlog.ErrUnavailable) {
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	return err
}
