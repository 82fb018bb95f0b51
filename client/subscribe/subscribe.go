// Package subscribe reads the run events of a tenant from NATS: durably, in order, and
// each once.
//
// The log hands over frames, of which each holds what one step of a run appended. A
// Subscription reads them with a durable consumer, so that it goes on where it ended, and
// gives the events to a handler. What the server hands out again, because an
// acknowledgement was lost, the handler does not see again.
package subscribe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
)

// Config says what is read.
type Config struct {
	// Tenant is whose events are read.
	Tenant string
	// Consumer is the tenant's durable consumer, as `waybill nats consumer create` makes
	// it; empty: subject.DefaultConsumer, which `waybill dev` has made. Those who share one
	// share its events. How long a handler may take with a frame before the server hands
	// it out again is the consumer's, 30 seconds unless it was made with another time.
	Consumer string
	// Seen knows what was handled before this process, so that it is not handled again
	// when it ended between the handler and the acknowledgement; nil: nobody does.
	Seen Seen
	// Damaged is told of a frame that is not as it was written, and where it is. When it
	// returns nil the frame is left out, and the reading goes on; nil: Run ends with the
	// error, and the frame comes again to who reads next.
	Damaged func(ctx context.Context, subject string, err error) error
}

// Seen tells how far the events of a run were handled, where the handler keeps that with
// what it does.
type Seen interface {
	// Last is the sequence of the run's last event that was handled; -1: none was.
	Last(ctx context.Context, runID string) (int, error)
}

// Event is an event, and the run that it is of.
type Event struct {
	wire.Event

	Run subject.Run
	// TraceParent is the W3C trace context of who appended the event; empty: there is none.
	TraceParent string
}

// Handler does something with an event. After an error the event, and those that
// follow, are not acknowledged: they come again.
type Handler func(ctx context.Context, e Event) error

// Subscription reads with one durable consumer.
type Subscription struct {
	cfg      Config
	consumer jetstream.Consumer
	runs     map[string]int // sequence of the last event that was handled, of runs that go on
}

// Open finds the consumer. nc needs the inbox prefix `_INBOX_USER` where the server wants
// one.
func Open(ctx context.Context, nc *nats.Conn, cfg Config) (*Subscription, error) {
	if cfg.Consumer == "" {
		cfg.Consumer = subject.DefaultConsumer
	}
	for _, s := range []string{cfg.Tenant, cfg.Consumer} {
		if !subject.Token(s) {
			return nil, fmt.Errorf("subscribe: tenant %q, consumer %q: want letters, digits, _ and -", cfg.Tenant, cfg.Consumer)
		}
	}
	api, err := jetstream.New(nc)
	if err != nil {
		return nil, fmt.Errorf("subscribe: %w", err)
	}
	name := subject.Consumer(cfg.Tenant, cfg.Consumer)
	s := &Subscription{cfg: cfg, runs: map[string]int{}}
	s.consumer, err = api.Consumer(ctx, subject.Stream, name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return nil, fmt.Errorf("subscribe: consumer %s: %w: the host's operator makes it with `waybill nats consumer create`", name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("subscribe: consumer %s: %w", name, err)
	}
	// What comes again after what follows it would pass for handled, and be lost.
	if n := s.consumer.CachedInfo().Config.MaxAckPending; n != 1 {
		return nil, fmt.Errorf("subscribe: consumer %s: its readers may have %d frames at a time (-1: any number), which loses their order: want one made with --max-pending 1", name, n)
	}
	return s, nil
}

// pullFor is how long the server is asked for the next frame at a time. It keeps a pull no
// longer than a minute.
const pullFor = 30 * time.Second

// pause is between two tries to reach a server that does not answer.
const pause = time.Second

// Run gives events to handle until ctx ends, which is no error, or handle fails. A frame
// that is damaged is an error as well, unless Config.Damaged says otherwise.
func (s *Subscription) Run(ctx context.Context, handle Handler) error {
	for ctx.Err() == nil {
		pull, cancel := context.WithTimeout(ctx, pullFor)
		m, err := s.consumer.Next(jetstream.FetchContext(pull))
		ended := pull.Err() != nil
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case ended && err != nil, errors.Is(err, nats.ErrTimeout), errors.Is(err, jetstream.ErrNoMessages):
			continue
		case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, jetstream.ErrConsumerDeleted), errors.Is(err, jetstream.ErrConsumerNotFound):
			return fmt.Errorf("subscribe: %w", err)
		case err != nil:
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
			continue
		}
		if err := s.frame(ctx, m, handle); err != nil {
			_ = m.Nak() // at once, rather than after AckWait
			return err
		}
		s.ack(ctx, m)
	}
	return nil
}

// ackTimeout bounds an acknowledgement, also after ctx has ended: what was handled has
// been handled.
const ackTimeout = 5 * time.Second

// ack acknowledges a message. When that is lost, it comes again, and is left out.
func (s *Subscription) ack(ctx context.Context, m jetstream.Msg) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ackTimeout)
	defer cancel()
	_ = m.DoubleAck(ctx)
}

// frame handles the events of one message.
func (s *Subscription) frame(ctx context.Context, m jetstream.Msg, handle Handler) error {
	f, events, err := decode(m)
	if err != nil {
		if s.cfg.Damaged != nil {
			return s.cfg.Damaged(ctx, m.Subject(), err)
		}
		return err
	}
	last, err := s.last(ctx, f)
	if err != nil {
		return err
	}
	for _, e := range events {
		if e.Sequence <= last {
			continue
		}
		if err := handle(ctx, Event{e, f.Run, f.Trace}); err != nil {
			return err
		}
		last = e.Sequence
		s.runs[f.Run.RunID] = last
	}
	return nil
}

// decode reads a message, and sees whether it is as it was written.
func decode(m jetstream.Msg) (*frame.Frame, []wire.Event, error) {
	f, err := frame.Parse(m.Subject(), m.Headers().Get, m.Data())
	if err == nil {
		err = f.Verify()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("subscribe: %w", err)
	}
	events, err := f.Events()
	if err != nil {
		return nil, nil, fmt.Errorf("subscribe: frame %s: %w", m.Subject(), err)
	}
	return f, events, nil
}

// maxRuns bounds the runs whose place is remembered: what the server hands out again is
// the last frame, so that few are needed.
const maxRuns = 4096

// last is the sequence of the last event of a frame's run that was handled; -1: none was.
func (s *Subscription) last(ctx context.Context, f *frame.Frame) (int, error) {
	id := f.Run.RunID
	if n, ok := s.runs[id]; ok {
		return n, nil
	}
	if len(s.runs) >= maxRuns {
		clear(s.runs)
	}
	if s.cfg.Seen == nil {
		return -1, nil
	}
	n, err := s.cfg.Seen.Last(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("subscribe: what was seen of run %s: %w", id, err)
	}
	s.runs[id] = n
	return n, nil
}
