// Package jetstream stores the run log in a NATS JetStream stream: one subject per run and kind,
// one message per frame.
//
// Every append carries the expected position of the run's last frame, over all subjects of the run.
// The server checks it under its own lock, so two writers can never both succeed. The broker's
// dedup window is not used: a retried append is recognized by its hash. Config.OnDisk is for a
// server that acknowledges before it syncs: see docs/adr/0035.
package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
)

// Config configures the log.
type Config struct {
	// Replicas of the stream: 1, or 3 in a cluster.
	Replicas int
	// InSync is the number of replicas that must be in sync for the log to be healthy; 0 means a
	// majority.
	InSync int
	// AckWait is how long a delivery may go without Extend before it is redelivered. A redelivery
	// does not make a dispatcher the owner of the run. All dispatchers use the same value.
	AckWait time.Duration
	// RetryDelay is the delay of Retry after the first try.
	RetryDelay time.Duration
	// MaxPending limits the runs delivered and not yet acknowledged.
	MaxPending int
	// Patience limits an append, the wait for the disk, each read of a frame, and the wait before a
	// long run is read. After that they fail with runlog.ErrUnavailable, always before the caller's
	// deadline. 0 means as long as the caller's context allows, except that each frame of a long run
	// must arrive within silence.
	Patience time.Duration
	// OnDisk is for a server that acknowledges before it syncs; nil disables the wait.
	OnDisk natslink.OnDisk
}

// DefaultConfig suits a single server.
func DefaultConfig() Config {
	return Config{Replicas: 1, AckWait: runlog.AckWait, RetryDelay: time.Second, MaxPending: 8192}
}

// dedupWindow is how long the broker remembers message ids. Frames have none.
const dedupWindow = time.Second

// publishTimeout limits one attempt of an append; the caller's context limits all attempts.
const publishTimeout = 5 * time.Second

// Log is the run log in JetStream. It is safe for concurrent use.
type Log struct {
	cfg    Config
	link   *natslink.Link
	js     js.JetStream
	stream js.Stream
	// leader reads what stream may not have yet, at a higher cost.
	leader js.Stream
	// alone: the log has a single copy.
	alone bool
	// reached is a position that the leader is known to have.
	reached atomic.Uint64
	// scans limits concurrent reads of long runs.
	scans *semaphore.Weighted
	// shorts limits concurrent short pages.
	shorts *semaphore.Weighted
	// asked is when the leader's position was last read, in Unix nanoseconds.
	asked atomic.Int64
	// lost counts the records missing at the last check.
	lost   atomic.Uint64
	erased erased
}

// Open creates the stream, or checks the existing one.
func Open(ctx context.Context, nc *nats.Conn, cfg Config) (*Log, error) {
	api, err := js.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open run log: %w", err)
	}
	s, err := natslink.Stream(ctx, api, js.StreamConfig{
		Name:        subject.Stream,
		Description: "OpenWOP run log: one message per frame",
		Subjects:    []string{subject.All},
		Storage:     js.FileStorage,
		Retention:   js.LimitsPolicy,
		Replicas:    cfg.Replicas,
		Duplicates:  dedupWindow,
		AllowDirect: true,
		DenyPurge:   true,
	})
	if err != nil {
		return nil, fmt.Errorf("open run log: stream %s: %w", subject.Stream, err)
	}
	return opened(ctx, nc, api, s, cfg)
}

// Attach opens an existing log for a reader: it creates and changes nothing. Errors:
// js.ErrStreamNotFound if there is none.
func Attach(ctx context.Context, nc *nats.Conn) (*Log, error) {
	api, err := js.New(nc)
	if err != nil {
		return nil, fmt.Errorf("open run log: %w", err)
	}
	s, err := natslink.Ensure(ctx, func(ctx context.Context) (js.Stream, error) { return api.Stream(ctx, subject.Stream) })
	if err != nil {
		return nil, fmt.Errorf("open run log: stream %s: %w", subject.Stream, err)
	}
	return opened(ctx, nc, api, s, DefaultConfig())
}

func opened(ctx context.Context, nc *nats.Conn, api js.JetStream, s js.Stream, cfg Config) (*Log, error) {
	leader, err := natslink.Leader(ctx, api, subject.Stream)
	if err != nil {
		return nil, fmt.Errorf("open run log: stream %s: %w", subject.Stream, err)
	}
	link, alone, scans := natslink.Watch(nc), s.CachedInfo().Config.Replicas <= 1, int64(maxPaged)
	if alone {
		scans = maxScanned
	}
	return &Log{
		cfg: cfg, link: link, js: api, stream: s, leader: leader, alone: alone,
		scans: semaphore.NewWeighted(scans), shorts: semaphore.NewWeighted(maxShort),
	}, nil
}

// Append stores a frame; see runlog.Appender.
func (l *Log) Append(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	trying, cancel := l.patient(ctx)
	defer cancel()
	for {
		pos, err := l.store(ctx, f, after)
		if err != nil {
			return 0, err
		}
		if err = l.Keep(trying, pos); err == nil {
			return pos, nil
		}
		// A restarted server may have lost what was not synced, so look for the frame again.
		if !errors.Is(err, natslink.ErrLost) || !lifecycle.Wait(trying, pauseAfter(err)) {
			return 0, err
		}
	}
}

// store sends a frame to the server.
func (l *Log) store(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	m := message(f, after)
	caller := ctx
	ctx, cancel := l.patient(caller)
	defer cancel()
	for {
		pos, err := l.publish(ctx, m)
		switch {
		case err == nil:
			return pos, nil
		case natslink.Conflict(err):
			return l.settle(caller, f, after)
		case errors.Is(err, nats.ErrMaxPayload): // the client knows the server's limit
			return 0, &runlog.TooLargeError{Size: int64(m.Size()), Limit: l.js.Conn().MaxPayload()}
		case !natslink.Undecided(err) && !isTransient(err) || ctx.Err() != nil:
			return 0, fmt.Errorf("%w: append frame %d of run %s: %w", runlog.ErrUnavailable, f.First, f.Run.RunID, err)
		}
		// Outcome unknown: send the same frame again. The expectation makes the second attempt fail
		// if the first one was stored.
		if !lifecycle.Wait(ctx, pauseAfter(err)) {
			return 0, fmt.Errorf("%w: append frame %d of run %s: %w", runlog.ErrUnavailable, f.First, f.Run.RunID, ctx.Err())
		}
	}
}

// pauseAfter returns the wait before an append is retried; it is short if another write is in
// progress.
func pauseAfter(err error) time.Duration {
	if natslink.Undecided(err) {
		return 3 * time.Millisecond
	}
	return 50 * time.Millisecond
}

// settle resolves a failed expectation: was the frame stored by an earlier attempt whose
// acknowledgement was lost?
func (l *Log) settle(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	frames, err := from(ctx, f.Run, after+1, 1, l.get)
	if errors.Is(err, runlog.ErrSealed) {
		return 0, errors.Join(fmt.Errorf("%w: run %s after position %d", runlog.ErrConflict, f.Run.RunID, after), err)
	}
	if err != nil && !errors.Is(err, runlog.ErrNotFound) {
		return 0, err
	}
	if len(frames) == 1 && frames[0].Hash == f.Hash {
		return frames[0].Pos, nil
	}
	if err := l.Keep(ctx, 0); err != nil { // the caller may act on the other frame, so it must be on disk
		return 0, err
	}
	return 0, fmt.Errorf("%w: run %s after position %d", runlog.ErrConflict, f.Run.RunID, after)
}

// Last returns the last frame of a run; see runlog.Reader.
func (l *Log) Last(ctx context.Context, run subject.Run) (*frame.Frame, error) {
	ctx, cancel := l.patient(ctx)
	defer cancel()
	var raw *js.RawStreamMsg
	err := l.link.Ask(ctx, func(ctx context.Context) (err error) {
		raw, err = l.newest().GetLastMsgForSubject(ctx, run.All())
		return err
	})
	if err != nil {
		return nil, readError("last frame", run, err)
	}
	kind := kindOf(raw)
	if kind != subject.Erase && kind != subject.Seal {
		return l.keeping(ctx, raw)
	}
	if err := l.Keep(ctx, raw.Sequence); err != nil {
		return nil, err
	}
	if kind == subject.Seal {
		return nil, sealed(run)
	}
	return nil, fmt.Errorf("%w: %s", runlog.ErrErased, run.RunID)
}

// all reads all frames of a run, from any server.
func (l *Log) all(ctx context.Context, run subject.Run) ([]*frame.Frame, error) {
	start, err := l.First(ctx, run)
	if errors.Is(err, runlog.ErrNotFound) {
		if _, lerr := l.Last(ctx, run); errors.Is(lerr, runlog.ErrErased) {
			return nil, lerr
		}
	}
	if err != nil {
		return nil, err
	}
	frames, whole, err := l.few(ctx, start)
	if err != nil || whole {
		return frames, err
	}
	if l.paged() {
		if frames, whole, err = l.atOnce(ctx, start.Run, frames); err != nil || whole {
			return frames, err
		}
	}
	if n := readSingly - len(frames); n > 0 {
		rest, err := from(ctx, start.Run, frames[len(frames)-1].Pos+1, n, l.get)
		if err != nil {
			return nil, err
		}
		if frames = append(frames, rest...); frames[len(frames)-1].Kind == subject.End {
			return frames, nil
		}
	}
	return l.scan(ctx, start.Run, frames) // large frames fill a page early
}

// readSingly is how many frames of a run are read one by one if they do not arrive in one page.
// Reading this many takes about as long as creating a consumer.
const readSingly = 32

// atOnce reads the frames after frames in one short page, plus the leader's last frame if only that
// is missing, and reports whether the run is complete. A server may have fewer frames than others,
// or fall silent.
func (l *Log) atOnce(ctx context.Context, run subject.Run, frames []*frame.Frame) ([]*frame.Frame, bool, error) {
	frames, err := l.shortPage(ctx, run, frames)
	if err != nil {
		return nil, false, err
	}
	end := frames[len(frames)-1]
	if end.Kind == subject.End {
		return frames, true, nil
	}
	last, err := l.Last(ctx, run)
	if err != nil || last.Pos <= end.Pos {
		return frames, err == nil, err
	}
	if all := append(slices.Clip(frames), last); linked(all) == nil { // the server did not have it yet
		return all, true, nil
	}
	return frames, false, nil
}

// few reads a run with at most one step between its first and last frame. The server finds these
// frames by subject. For a page it would scan the messages in between, thousands for a run that
// slept for long. For any other run it returns the first frame.
func (l *Log) few(ctx context.Context, start *frame.Frame) (frames []*frame.Frame, whole bool, err error) {
	first := []*frame.Frame{start}
	last, err := l.Last(ctx, start.Run)
	if errors.Is(err, runlog.ErrNotFound) && !errors.Is(err, runlog.ErrErased) {
		return first, false, nil // its leader has fewer frames of the run
	}
	if err != nil {
		return nil, false, err
	}
	if last.Pos <= start.Pos {
		return first, true, nil
	}
	if all := []*frame.Frame{start, last}; linked(all) == nil {
		return all, true, nil
	}
	raw, err := l.get(ctx, start.Pos+1, start.Run.Frame(subject.Step))
	if err != nil {
		return first, false, nil //nolint:nilerr // there is none, or the page fails as well
	}
	step, err := parseRaw(raw)
	if err != nil {
		return nil, false, err
	}
	if all := []*frame.Frame{start, step, last}; linked(all) == nil {
		return all, true, nil
	}
	return first, false, nil
}

// shortPage fails if nothing arrives, or a frame is damaged. Beyond the concurrency limit the page
// is skipped, and the frames are read one by one.
func (l *Log) shortPage(ctx context.Context, run subject.Run, frames []*frame.Frame) ([]*frame.Frame, error) {
	if !l.shorts.TryAcquire(1) {
		return frames, nil
	}
	defer l.shorts.Release(1)
	ctx, cancel := l.patient(ctx)
	defer cancel()
	var (
		read    = frames
		damaged error
	)
	err := l.link.Ask(ctx, func(ctx context.Context) error {
		return natslink.ShortPage(ctx, l.js.Conn(), subject.Stream, run.All(), read[len(read)-1].Pos+1, collect(&read, &damaged, func() {}))
	})
	if err != nil && len(read) == len(frames) {
		return nil, readError("frames", run, err)
	}
	return read, damaged
}

// collect collects the frames of a run up to its end, or to a damaged one. The run may be sealed during
// the read: then damaged is runlog.ErrSealed.
func collect(frames *[]*frame.Frame, damaged *error, heard func()) func(*js.RawStreamMsg) (bool, error) {
	return func(raw *js.RawStreamMsg) (bool, error) {
		f, err := parseRaw(raw)
		if err != nil {
			*damaged = err
			return false, nil
		}
		heard()
		if f.Kind == subject.Seal { // the frames between are being removed, or are
			*damaged = sealed(f.Run)
			return false, nil
		}
		*frames = append(*frames, f)
		return f.Kind != subject.End, nil // nothing follows an end
	}
}

// Concurrent reads of long runs: the server ends a connection with too much pending data. A page is
// a megabyte plus a frame; a consumer may send more. A short page is 64 KB plus a frame.
const (
	maxPaged   = 3
	maxScanned = 1
	maxShort   = 128
)

// scan reads the frames of a run after those already read, up to its last at the time of the call.
func (l *Log) scan(ctx context.Context, run subject.Run, frames []*frame.Frame) ([]*frame.Frame, error) {
	last, err := l.Last(ctx, run)
	if err != nil {
		return nil, err
	}
	next := func() uint64 { return frames[len(frames)-1].Pos + 1 }
	if last.Pos < next() {
		return frames, nil
	}
	var damaged error
	err = l.oneOfFew(ctx, func(ctx context.Context, heard func()) error {
		return l.walk(ctx, run, next(), last.Pos, collect(&frames, &damaged, heard))
	})
	if errors.Is(err, natslink.ErrLacking) {
		rest, lerr := from(ctx, run, next(), 0, l.getOfLeader)
		if lerr != nil {
			return nil, lerr
		}
		frames, err = append(frames, rest...), nil
	}
	switch end := frames[len(frames)-1]; {
	case err != nil:
		return nil, readError("frames", run, err)
	case damaged != nil:
		return nil, damaged
	case end.Pos < last.Pos && end.Kind != subject.End:
		return nil, fmt.Errorf("%w: run %s is there up to %d, and had a frame at %d", runlog.ErrUnavailable, run.RunID, end.Pos, last.Pos)
	}
	return frames, nil
}

// silence is the maximum wait for the next frame of a long run without another limit, because other
// reads wait for their turn.
const silence = 10 * time.Second

// oneOfFew calls ask when it is its turn. A long run exceeds the limit of a frame, so the limit
// applies to the wait for the next frame, from one call of heard to the next.
func (l *Log) oneOfFew(ctx context.Context, ask func(ctx context.Context, heard func()) error) error {
	turn, cancel := l.patient(ctx)
	defer cancel()
	if err := l.scans.Acquire(turn, 1); err != nil {
		return err
	}
	defer l.scans.Release(1)
	p := cmp.Or(l.cfg.Patience, silence)
	ctx, silent := context.WithCancel(ctx)
	defer silent()
	late := time.AfterFunc(p, silent)
	defer late.Stop()
	return l.link.Ask(ctx, func(ctx context.Context) error { return ask(ctx, func() { late.Reset(p) }) })
}

// walk visits the messages of a run between positions, in the way that costs the servers least: see
// docs/adr/0033.
func (l *Log) walk(ctx context.Context, run subject.Run, from, to uint64, each func(*js.RawStreamMsg) (bool, error)) error {
	if l.paged() {
		return natslink.Pages(ctx, l.js.Conn(), subject.Stream, run.All(), from, to, each)
	}
	return natslink.Scan(ctx, l.js.Conn(), l.stream, run.All(), from, to, each)
}

// paged reports whether any server can serve pages.
func (l *Log) paged() bool { return !l.alone && l.stream.CachedInfo().Config.AllowDirect }
