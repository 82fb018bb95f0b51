package natsperm

import (
	"context"
	"errors"
	"fmt"
	"time"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/protocol/subject"
)

// Consumer is a durable pull consumer of a tenant's events.
type Consumer struct {
	Tenant string
	// Name is its name, without the tenant's.
	Name string
	// New skips events from before the consumer was created.
	New bool
	// AckWait is how long a reader may take with a frame before redelivery; 0 means DefaultAckWait.
	AckWait time.Duration
	// MaxPending is the number of unacknowledged frames; 0 means one. With more, redelivered frames may
	// be out of order.
	MaxPending int
}

// DefaultAckWait suffices for most handlers.
const DefaultAckWait = 30 * time.Second

// maxPull limits how long a pull may wait: the server does not keep the reply route for longer, and
// a later frame would be lost.
const maxPull = time.Minute

// ErrOther means that an existing consumer of that name is not one for readers: it would deliver other
// events, or push them to an arbitrary subject.
var ErrOther = errors.New("there is a consumer of this name that is not for readers")

// check rejects names that are not valid in a subject.
func (c Consumer) check() error {
	if !subject.Token(c.Tenant) || !subject.Token(c.Name) {
		return fmt.Errorf("consumer %q of tenant %q: want letters, digits, _ and -", c.Name, c.Tenant)
	}
	return nil
}

// Make creates the consumer. An existing one is unchanged, including its position. api belongs to
// the host's account, which holds the log.
func (c Consumer) Make(ctx context.Context, api js.JetStream) error {
	if err := c.check(); err != nil {
		return err
	}
	want := js.ConsumerConfig{
		Durable:           subject.Consumer(c.Tenant, c.Name),
		Description:       "read by clients of tenant " + c.Tenant,
		FilterSubject:     subject.Tenant(c.Tenant),
		AckPolicy:         js.AckExplicitPolicy,
		AckWait:           c.AckWait,
		MaxAckPending:     max(1, c.MaxPending),
		MaxRequestExpires: maxPull,
	}
	if c.AckWait == 0 {
		want.AckWait = DefaultAckWait
	}
	if c.New {
		want.DeliverPolicy = js.DeliverNewPolicy
	}
	_, err := api.CreateConsumer(ctx, subject.Stream, want)
	if errors.Is(err, js.ErrConsumerExists) {
		err = c.found(ctx, api)
	}
	if err != nil {
		return fmt.Errorf("consumer %s: %w", want.Durable, err)
	}
	return nil
}

// found checks whether the existing consumer is one for readers.
func (c Consumer) found(ctx context.Context, api js.JetStream) error {
	is, err := api.Consumer(ctx, subject.Stream, subject.Consumer(c.Tenant, c.Name))
	if errors.Is(err, js.ErrNotPullConsumer) {
		return fmt.Errorf("%w: it pushes: delete it first", ErrOther)
	}
	if err != nil {
		return err
	}
	cfg := is.CachedInfo().Config
	if cfg.FilterSubject != subject.Tenant(c.Tenant) || cfg.AckPolicy != js.AckExplicitPolicy || cfg.MaxRequestExpires != maxPull {
		return fmt.Errorf("%w: its filter is %q, acknowledgement %s, a pull waits up to %s: delete it first", ErrOther, cfg.FilterSubject, cfg.AckPolicy, cfg.MaxRequestExpires)
	}
	return nil
}

// Delete deletes the consumer, including the position of its readers.
func (c Consumer) Delete(ctx context.Context, api js.JetStream) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := api.DeleteConsumer(ctx, subject.Stream, subject.Consumer(c.Tenant, c.Name)); err != nil {
		return fmt.Errorf("consumer %s: %w", subject.Consumer(c.Tenant, c.Name), err)
	}
	return nil
}
