// Package jetstream keeps the run log in a NATS JetStream stream: one subject
// per run and kind, one message per frame.
//
// Every append carries the stream position it expects the run to end at, over
// all subjects of the run. The server checks that under its own lock, so two
// writers can never both succeed. The broker's dedup window plays no part: a
// retried append is recognised by its hash. A server that acknowledges what it has not
// synced has Config.OnDisk for that: see docs/adr/0035.
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

// Config says how the log is kept.
type Config struct {
	// Replicas of the stream: 1, or 3 in a cluster.
	Replicas int
	// InSync is how many of them must be in sync for the log to be well; 0: a majority.
	InSync int
	// AckWait is how long a delivery may stay silent before it is handed out again. A redelivery
	// does not make a dispatcher the owner of the run. All dispatchers use the same value.
	AckWait time.Duration
	// RetryDelay is how long Retry holds a run back after its first try.
	RetryDelay time.Duration
	// MaxPending bounds the runs handed out and not yet acknowledged.
	MaxPending int
	// Patience is how long an append, the wait for the disk, each read of a frame, and the wait until a long run may be read
	// goes on at most before it fails with runlog.ErrUnavailable; never so long that the
	// caller's deadline passes first. 0: as long as the caller's context allows, but for the
	// frames of a long run, of which each comes within silence.
	Patience time.Duration
	// OnDisk is for a server that does not sync before it acknowledges; nil: it does, or
	// nobody asks for it.
	OnDisk natslink.OnDisk
}

// DefaultConfig is right for one server.
func DefaultConfig() Config {
	return Config{Replicas: 1, AckWait: runlog.AckWait, RetryDelay: time.Second, MaxPending: 8192}
}

// dedupWindow is how long the broker remembers message ids. No frame has one, so
// there is nothing to remember.
const dedupWindow = time.Second

// publishTimeout bounds one try of an append; the caller's context bounds all tries.
const publishTimeout = 5 * time.Second

// Log is the run log in JetStream. It is safe for concurrent use.
type Log struct {
	cfg    Config
	link   *natslink.Link
	js     js.JetStream
	stream js.Stream
	// leader reads what stream may not have yet, at a cost.
	leader js.Stream
	// alone: there is one copy of the log.
	alone bool
	// reached is a position that the leader is known to have.
	reached atomic.Uint64
	// scans bounds the long runs that are read at a time.
	scans *semaphore.Weighted
	// shorts bounds the short pages that are on their way.
	shorts *semaphore.Weighted
	// asked is when the leader was asked last how far it is, in Unix nanoseconds.
	asked atomic.Int64
	// lost counts the records that were gone at the last check.
	lost atomic.Uint64
}

// Open makes the stream, or checks that the one there is as it must be.
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
		DenyDelete:  true,
		DenyPurge:   true,
	})
	if err != nil {
		return nil, fmt.Errorf("open run log: stream %s: %w", subject.Stream, err)
	}
	return opened(ctx, nc, api, s, cfg)
}

// Attach opens the log that is there for a reader: it makes nothing and changes nothing.
// Errors: js.ErrStreamNotFound where there is none.
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
		// A server that is opened anew may have lost what it had not kept: the frame is looked for again.
		if !errors.Is(err, natslink.ErrLost) || !lifecycle.Wait(trying, pauseAfter(err)) {
			return 0, err
		}
	}
}

// store has the server take a frame.
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
		// Outcome unknown: the same frame may be sent again, the expectation
		// makes the second one fail if the first was stored.
		if !lifecycle.Wait(ctx, pauseAfter(err)) {
			return 0, fmt.Errorf("%w: append frame %d of run %s: %w", runlog.ErrUnavailable, f.First, f.Run.RunID, ctx.Err())
		}
	}
}

// pauseAfter is how long an append waits before it is tried again: for another one that is
// on its way not long.
func pauseAfter(err error) time.Duration {
	if natslink.Undecided(err) {
		return 3 * time.Millisecond
	}
	return 50 * time.Millisecond
}

// settle decides a failed expectation: was the frame stored by an earlier try
// whose acknowledgement got lost?
func (l *Log) settle(ctx context.Context, f *frame.Frame, after uint64) (uint64, error) {
	frames, err := from(ctx, f.Run, after+1, 1, l.get)
	if err != nil && !errors.Is(err, runlog.ErrNotFound) {
		return 0, err
	}
	if len(frames) == 1 && frames[0].Hash == f.Hash {
		return frames[0].Pos, nil
	}
	if err := l.Keep(ctx, 0); err != nil { // who was second may tell of the first, wherever that is
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
	return l.keeping(ctx, raw)
}

// all reads all frames of a run, of any server.
func (l *Log) all(ctx context.Context, run subject.Run) ([]*frame.Frame, error) {
	start, err := l.First(ctx, run)
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
	return l.scan(ctx, start.Run, frames) // large frames fill a page before there are as many
}

// readSingly is how many frames of a run are asked for one by one, where they do not come at once: as many
// take about as long as a consumer takes to be made.
const readSingly = 32

// atOnce reads what comes after frames in one short page, with the leader's last frame if only that is missing,
// and reports whether that is the whole run. A server may have less of it than others, or fall silent.
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

// few reads a run that has a step at most between its first and its last frame. The server finds
// these frames by their subjects. For a page it scans the messages between them, thousands for a
// run that slept among many others. Of any other run it returns the first frame.
func (l *Log) few(ctx context.Context, start *frame.Frame) (frames []*frame.Frame, whole bool, err error) {
	first := []*frame.Frame{start}
	last, err := l.Last(ctx, start.Run)
	if errors.Is(err, runlog.ErrNotFound) {
		return first, false, nil // its leader has less of the run
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

// shortPage fails if nothing comes, or what comes is damaged. Of too many at a time some are left out: the
// frames are asked for one by one then.
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

// collect takes the frames of a run up to its end, or to one that is damaged.
func collect(frames *[]*frame.Frame, damaged *error, heard func()) func(*js.RawStreamMsg) (bool, error) {
	return func(raw *js.RawStreamMsg) (bool, error) {
		f, err := parseRaw(raw)
		if err != nil {
			*damaged = err
			return false, nil
		}
		heard()
		*frames = append(*frames, f)
		return f.Kind != subject.End, nil // nothing follows an end
	}
}

// How many long runs are read at a time: the server ends a connection for which too much waits. A page
// is a megabyte and a frame, what is sent ahead to a consumer may be more. A short page
// is 64 KB and a frame.
const (
	maxPaged   = 3
	maxScanned = 1
	maxShort   = 128
)

// scan reads the frames of a run that come after those that have been read, up to what is
// its last when it is called.
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

// silence is how long whoever reads a long run waits for its next frame where nothing else bounds that:
// others wait until it is through.
const silence = 10 * time.Second

// oneOfFew asks when it is its turn. A long run takes longer than one frame may: what is bounded is the
// wait for the next, from one call of heard to another.
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

// walk hands over the messages of a run between positions, in the way that costs the servers least: see
// docs/adr/0033.
func (l *Log) walk(ctx context.Context, run subject.Run, from, to uint64, each func(*js.RawStreamMsg) (bool, error)) error {
	if l.paged() {
		return natslink.Pages(ctx, l.js.Conn(), subject.Stream, run.All(), from, to, each)
	}
	return natslink.Scan(ctx, l.js.Conn(), l.stream, run.All(), from, to, each)
}

// paged reports that any server answers for many frames at a time.
func (l *Log) paged() bool { return !l.alone && l.stream.CachedInfo().Config.AllowDirect }
