package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tmaxmax/go-sse"

	"waybill.dev/waybill/protocol/wire"
)

// State is how events arrive.
type State string

// The states of a Follow.
const (
	Live         State = "live"
	Reconnecting State = "reconnecting"
	// Polling means that the stream delivers nothing, so events are polled.
	Polling State = "polling"
)

// FollowOptions configures Follow.
type FollowOptions struct {
	// From is the first sequence to return.
	From int
	// OnState is called when the State changes, with the cause; nil disables it.
	OnState func(State, error)
}

// Limits of a Follow.
const (
	firstBackoff = 500 * time.Millisecond
	maxBackoff   = 15 * time.Second
	// pollAfter is the number of failed streams before polling.
	pollAfter = 3
	pollWait  = 20 * time.Second
	// silence is how long a stream may be silent: three times the host's keep-alive interval
	// (OpenWOP host contract §4.2).
	silence = 90 * time.Second
	// maxFrame limits one event.
	maxFrame = 64 << 20
)

// Follow returns the events of a run to its end: each once, in order, without gaps. It reconnects
// for as long as ctx lasts, and the host resends what was missed. An error is always the last
// element: a rejection by the host, or the end of ctx.
func (c *Client) Follow(ctx context.Context, runID string, o FollowOptions) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		f := &follower{client: c, runID: runID, next: o.From, onState: o.OnState, yield: yield}
		if err := f.follow(ctx); err != nil && !errors.Is(err, errStop) {
			yield(Event{}, err)
		}
	}
}

type follower struct {
	client  *Client
	runID   string
	next    int // the next sequence
	ended   bool
	state   State
	onState func(State, error)
	yield   func(Event, error) bool
}

// errStop ends a Follow whose reader has stopped.
var errStop = errors.New("stop")

func (f *follower) follow(ctx context.Context) error {
	failures := 0
	for {
		before := f.next
		err := f.stream(ctx)
		if f.ended || final(ctx, err) {
			return endOf(ctx, err)
		}
		if f.next > before {
			failures = 0
		}
		failures++
		if failures > pollAfter {
			if err := f.poll(ctx, pollWait); final(ctx, err) {
				return endOf(ctx, err)
			} else if err == nil {
				f.setState(Polling, nil)
				if f.ended {
					return nil
				}
				continue // the host has already waited, so retry the stream immediately
			}
		}
		f.setState(Reconnecting, err)
		if err := f.client.wait(ctx, backoff(failures, err)); err != nil {
			return err
		}
	}
}

// final reports whether a retry is pointless.
func final(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, errStop) {
		return true
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Status < 500 && e.Status != http.StatusTooManyRequests
	}
	return false
}

func endOf(ctx context.Context, err error) error {
	if ctx.Err() != nil && !errors.Is(err, errStop) {
		return ctx.Err()
	}
	return err
}

func backoff(failures int, err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok && e.Fault.RetryAfter > 0 {
		return e.Fault.RetryAfter
	}
	d := min(firstBackoff<<min(failures-1, 10), maxBackoff)
	return d/2 + rand.N(d/2) //nolint:gosec // G404: jitter, not a secret
}

func (f *follower) setState(s State, err error) {
	if s != f.state && f.onState != nil {
		f.onState(s, err)
	}
	f.state = s
}

// stream reads server-sent events until the connection ends.
func (f *follower) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	header := http.Header{"Accept": {"text/event-stream"}, "Cache-Control": {"no-store"}}
	if f.next > 0 {
		header.Set("Last-Event-ID", strconv.Itoa(f.next-1))
	}
	quiet := time.AfterFunc(silence, func() { cancel(errTimeout) })
	defer quiet.Stop()
	res, err := f.client.send(ctx, request{
		method: http.MethodGet, path: runPath(f.runID) + "/events", query: url.Values{"streamMode": {"debug"}}, header: header,
	}, nil)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == http.StatusNoContent { // the run has ended, and this reader has all of it
		f.ended = true
		return nil
	}
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
		if err != nil {
			return f.client.unreachable(ctx, err)
		}
		return refusal(f.client.base, res, b)
	}
	f.setState(Live, nil)
	for frame, err := range sse.Read(alive{res.Body, quiet}, &sse.ReadConfig{MaxEventSize: maxFrame}) {
		if err != nil {
			return f.client.unreachable(ctx, err)
		}
		if frame.Data == "" || !wire.EventType(frame.Type).Known() {
			continue // a notice about the run, not an event of its log
		}
		if err := f.handle(ctx, []byte(frame.Data)); err != nil || f.ended {
			return err
		}
	}
	return io.ErrUnexpectedEOF
}

// alive extends the deadline of a stream on every read.
type alive struct {
	io.Reader
	quiet *time.Timer
}

func (a alive) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if n > 0 {
		a.quiet.Reset(silence)
	}
	return n, err
}

// handle emits an event after fetching events that the stream skipped.
func (f *follower) handle(ctx context.Context, doc []byte) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var e Event
	if err := json.Unmarshal(doc, &e); err != nil {
		return fmt.Errorf("invalid event in the stream: %w", err)
	}
	if e.EventID == "" {
		return nil // such as run.annotated: sent but not recorded
	}
	for e.Sequence > f.next {
		before := f.next
		if err := f.poll(ctx, time.Second); err != nil || f.ended {
			return err
		}
		if f.next == before {
			return fmt.Errorf("the stream has event %d, but the host has not recorded event %d", e.Sequence, f.next)
		}
	}
	return f.emit(e)
}

// poll fetches the events from the next one on.
func (f *follower) poll(ctx context.Context, wait time.Duration) error {
	page, err := f.client.Events(ctx, f.runID, EventQuery{From: f.next, Wait: wait})
	if err != nil {
		return err
	}
	for _, e := range page.Events {
		if err := f.emit(e); err != nil {
			return err
		}
	}
	f.ended = f.ended || page.IsComplete
	return nil
}

// emit yields an event unless it was yielded before.
func (f *follower) emit(e Event) error {
	if e.Sequence < f.next {
		return nil
	}
	if e.Sequence > f.next {
		return fmt.Errorf("event %d is missing: the host returned %d after %d", f.next, e.Sequence, f.next-1)
	}
	f.next++
	f.ended = terminal(e.Type)
	if !f.yield(e, nil) {
		return errStop
	}
	return nil
}

// terminal reports whether the type ends a run's log.
func terminal(t wire.EventType) bool {
	return t == wire.EventRunCompleted || t == wire.EventRunFailed || t == wire.EventRunCancelled
}
