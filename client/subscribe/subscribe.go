// Package subscribe reads the run events of a tenant from NATS: durably, in order, and each once.
//
// The log delivers frames; each holds the events that one step of a run appended. A Subscription
// reads them with a durable consumer, so that it resumes where it stopped, and passes the events to
// a handler. Redeliveries after a lost acknowledgement are not passed again.
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

// Config selects what to read.
type Config struct {
	// Tenant owns the events.
	Tenant string
	// Consumer is the tenant's durable consumer, as created by `waybill nats consumer create`;
	// empty means subject.DefaultConsumer, which `waybill dev` creates. Subscriptions with the same
	// consumer share its events. The consumer's AckWait limits the time for a frame before
	// redelivery; the default is 30 seconds.
	Consumer string
	// Seen returns the progress from earlier processes, so that an event is not handled again if
	// the process ended between handler and acknowledgement; nil disables it.
	Seen Seen
	// Damaged is called for a damaged frame, with its subject. If it returns nil, the frame is
	// skipped. With nil, Run ends with the error, and the frame is redelivered to the next reader.
	Damaged func(ctx context.Context, subject string, err error) error
	// Missed is called when a run was moved to the host's cold store before this subscription read its
	// events. If it returns nil, the subscription continues with the next frame. With nil, Run ends with
	// the error, and the frame that marks the run is redelivered to the next reader. Without Seen, events
	// that earlier processes were meant to read are not reported.
	Missed func(ctx context.Context, missed *MissedError) error
	// Unavailable is called each time the server does not deliver, before Run tries again; nil disables
	// it.
	Unavailable func(err error)
}

// MissedError means that the log no longer has events that were not handled. The API of the host has
// them: GET /v1/runs/{runId}/events/poll?lastSequence={After}.
type MissedError struct {
	Run subject.Run
	// After is the sequence of the last handled event, or -1; Last that of the run's last event.
	After, Last int
}

func (e *MissedError) Error() string {
	return fmt.Sprintf("events %d to %d of run %s are no longer in the log; read them from GET /v1/runs/%s/events/poll?lastSequence=%d",
		e.After+1, e.Last, e.Run.RunID, e.Run.RunID, e.After)
}

// Seen returns how far the events of a run were handled, for handlers that store this with their
// results.
type Seen interface {
	// Last returns the sequence of the run's last handled event, or -1.
	Last(ctx context.Context, runID string) (int, error)
}

// Event is an event and its run.
type Event struct {
	wire.Event

	Run subject.Run
	// TraceParent is the W3C trace context of the process that appended the event; it may be empty.
	TraceParent string
}

// Handler handles an event. After an error this event and the following ones are not acknowledged
// and will be redelivered.
type Handler func(ctx context.Context, e Event) error

// Subscription reads with one durable consumer. It is for one goroutine.
type Subscription struct {
	cfg      Config
	consumer jetstream.Consumer
	runs     map[string]int // sequence of the last handled event, by active run
	// began is the first position that was not read when the consumer was opened; 0 if runs does not have
	// all runs since.
	began uint64
}

// Open finds the consumer. nc needs the inbox prefix `_INBOX_USER` if the server requires one.
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
		return nil, fmt.Errorf("subscribe: consumer %s: %w; the operator creates it with `waybill nats consumer create`", name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("subscribe: consumer %s: %w", name, err)
	}
	// With several pending frames, a redelivered one would count as handled, and be lost.
	if n := s.consumer.CachedInfo().Config.MaxAckPending; n != 1 {
		return nil, fmt.Errorf("subscribe: consumer %s: max pending is %d, which loses the order of frames; create it with --max-pending 1", name, n)
	}
	s.began = s.consumer.CachedInfo().AckFloor.Stream + 1
	return s, nil
}

// pullFor is the duration of one pull. The server allows at most a minute.
const pullFor = 30 * time.Second

// pause is the wait before retrying an unavailable server.
const pause = time.Second

// Run passes events to handle until ctx ends, which is not an error. It returns:
//   - the error of handle, Config.Seen, Config.Damaged or Config.Missed. The event, or the whole frame, is
//     delivered again: to the next Run, or to another reader of the consumer;
//   - the error of a damaged frame, and a MissedError, if Config has no function for it;
//   - jetstream.ErrConsumerNotFound or ErrConsumerDeleted if the consumer was deleted;
//   - nats.ErrConnectionClosed if the connection was closed.
//
// Everything else, such as a server without a leader, is tried again each second; see
// Config.Unavailable.
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
			if err := s.await(ctx, err); err != nil {
				return err
			}
			continue
		}
		if err := s.frame(ctx, m, handle); err != nil {
			_ = m.Nak() // immediately, instead of after AckWait
			return err
		}
		s.ack(ctx, m)
	}
	return nil
}

// await waits before the next pull. It returns an error if the consumer was deleted: a server that has
// none answers like one that is unavailable.
func (s *Subscription) await(ctx context.Context, cause error) error {
	asking, cancel := context.WithTimeout(ctx, answerTimeout)
	_, err := s.consumer.Info(asking)
	cancel()
	if errors.Is(err, jetstream.ErrConsumerNotFound) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("subscribe: %w", err)
	}
	if s.cfg.Unavailable != nil && ctx.Err() == nil {
		s.cfg.Unavailable(cause)
	}
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
	return nil
}

// answerTimeout limits a question about the consumer, and an acknowledgement, also after ctx has ended, because the event was handled.
const answerTimeout = 5 * time.Second

// ack acknowledges a message. If the acknowledgement is lost, the redelivery is skipped.
func (s *Subscription) ack(ctx context.Context, m jetstream.Msg) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
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
	if f.Kind == subject.Seal {
		return s.sealed(ctx, f, last)
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

// sealed reports events of a sealed run that were not handled, as far as that is known.
func (s *Subscription) sealed(ctx context.Context, f *frame.Frame, last int) error {
	seal, err := f.Sealing()
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	_, handled := s.runs[f.Run.RunID]
	known := s.cfg.Seen != nil || handled || s.began > 0 && len(seal.Positions) > 0 && seal.Positions[0][0] >= s.began
	if last >= f.Last || !known {
		return nil
	}
	missed := &MissedError{Run: f.Run, After: last, Last: f.Last}
	if s.cfg.Missed != nil {
		return s.cfg.Missed(ctx, missed)
	}
	return missed
}

// decode parses and verifies a message.
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

// maxRuns limits the runs whose progress is cached. Only the last frame is redelivered, so few are
// needed.
const maxRuns = 4096

// last returns the sequence of the last handled event of a frame's run, or -1.
func (s *Subscription) last(ctx context.Context, f *frame.Frame) (int, error) {
	id := f.Run.RunID
	if n, ok := s.runs[id]; ok {
		return n, nil
	}
	if len(s.runs) >= maxRuns {
		clear(s.runs)
		s.began = 0
	}
	if s.cfg.Seen == nil {
		return -1, nil
	}
	n, err := s.cfg.Seen.Last(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("subscribe: read the progress of run %s: %w", id, err)
	}
	s.runs[id] = n
	return n, nil
}
