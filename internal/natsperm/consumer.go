package natsperm

import (
	"context"
	"errors"
	"fmt"
	"time"

	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/protocol/subject"
)

// Consumer is a durable pull consumer of a tenant's events, from which readers read.
type Consumer struct {
	Tenant string
	// Name is its name, without the tenant's.
	Name string
	// New leaves out what was there before the consumer was made.
	New bool
	// AckWait is how long a reader may take with a frame before the server hands it out
	// again; 0: DefaultAckWait.
	AckWait time.Duration
	// MaxPending is how many frames are with readers at a time; 0: one. With more, what
	// comes again may come after what follows it.
	MaxPending int
}

// DefaultAckWait is time enough for most handlers.
const DefaultAckWait = 30 * time.Second

// maxPull is how long a pull may wait: for longer the server does not keep the way back to who
// pulls, and a frame that comes then would be handed to nobody.
const maxPull = time.Minute

// ErrOther says that there is a consumer of that name which is not such a one: it would
// hand out other events, or push them to a subject of its maker's choice.
var ErrOther = errors.New("there is a consumer of this name that is not for readers")

// check tells what cannot stand in a subject.
func (c Consumer) check() error {
	if !subject.Token(c.Tenant) || !subject.Token(c.Name) {
		return fmt.Errorf("consumer %q of tenant %q: want letters, digits, _ and -", c.Name, c.Tenant)
	}
	return nil
}

// Make makes the consumer. One that is there already stays as it is, and where it is. api is
// of the host's account, in which the log is.
func (c Consumer) Make(ctx context.Context, api js.JetStream) error {
	if err := c.check(); err != nil {
		return err
	}
	want := js.ConsumerConfig{
		Durable: subject.Consumer(c.Tenant, c.Name), Description: "read by clients of tenant " + c.Tenant,
		FilterSubject: subject.Tenant(c.Tenant), AckPolicy: js.AckExplicitPolicy, AckWait: c.AckWait, MaxAckPending: max(1, c.MaxPending),
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

// found looks whether the consumer that is there is one for readers.
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

// Delete deletes the consumer, and with it where its readers are in the log.
func (c Consumer) Delete(ctx context.Context, api js.JetStream) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := api.DeleteConsumer(ctx, subject.Stream, subject.Consumer(c.Tenant, c.Name)); err != nil {
		return fmt.Errorf("consumer %s: %w", subject.Consumer(c.Tenant, c.Name), err)
	}
	return nil
}
