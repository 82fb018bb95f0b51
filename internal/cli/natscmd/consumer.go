package natscmd

import (
	"context"
	"errors"
	"fmt"
	"os"

	js "github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/hostflags"
	"waybill.dev/waybill/internal/config"
	"waybill.dev/waybill/internal/host/natsstore"
	"waybill.dev/waybill/internal/natsperm"
	"waybill.dev/waybill/internal/obs"
	"waybill.dev/waybill/protocol/subject"
)

// natsConsumerOptions are the flags of `waybill nats consumer create` and `delete`.
type natsConsumerOptions struct {
	consumer natsperm.Consumer
	nats     natsstore.Address
}

// Consumer is `waybill nats consumer`. Readers have no permission to create consumers; see natsperm.
func Consumer() *cobra.Command {
	c := &cobra.Command{Use: "consumer", Short: "Create and delete NATS consumers for readers of events"}
	var o, d natsConsumerOptions
	o.nats.Replicas, d.nats.Replicas = 1, 1 // unused: no log is created
	// delete has no flags for the settings of a new consumer. Defaults pass their check.
	d.consumer.AckWait, d.consumer.MaxPending = natsperm.DefaultAckWait, 1
	create := o.command("create", "Create a durable consumer of a tenant's events", natsperm.Consumer.Make)
	create.Long = `Creates a durable pull consumer of a tenant's events, called TENANT=NAME on the server, for
readers with credentials of "waybill nats creds". An existing consumer is not changed.

Connect with the credentials of the host, whose account has the log.`
	create.Example = `  waybill nats consumer create --tenant acme --name billing --nats nats://nats:4222 --nats-creds host.creds`
	f := create.Flags()
	f.BoolVar(&o.consumer.New, "new", false, "skip events that exist already")
	f.DurationVar(&o.consumer.AckWait, "ack-wait", natsperm.DefaultAckWait, "time until a frame without an acknowledgement is delivered again")
	f.IntVar(&o.consumer.MaxPending, "max-pending", 1, "maximum unacknowledged frames; with more than 1, redelivered frames may arrive out of order")
	del := d.command("delete", "Delete a consumer and its position in the log", natsperm.Consumer.Delete)
	del.Example = `  waybill nats consumer delete --tenant acme --name billing --nats nats://nats:4222 --nats-creds host.creds`
	c.AddCommand(create, del)
	return c
}

// command returns a command that calls do with the consumer of the flags.
func (o *natsConsumerOptions) command(use, short string, do func(natsperm.Consumer, context.Context, js.JetStream) error) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return exit.With(exit.Usage, err)
			}
			log, err := obs.NewLogger(cmd.ErrOrStderr(), "error", obs.FormatText)
			if err != nil {
				return err
			}
			nc, err := o.nats.Dial("nats consumer", log)
			if err != nil {
				return exit.With(exit.Unreachable, fmt.Errorf("--nats: cannot connect: %w", err))
			}
			defer nc.Close()
			api, err := js.New(nc)
			if err != nil {
				return err
			}
			return consumerError(do(o.consumer, cmd.Context(), api))
		},
	}
	f := c.Flags()
	f.StringVar(&o.consumer.Tenant, "tenant", "", "tenant whose events are read; required")
	f.StringVar(&o.consumer.Name, "name", subject.DefaultConsumer, "name of the consumer")
	hostflags.NATSConnection(f, &o.nats, "required")
	return c
}

// check returns the errors of the flags.
func (o *natsConsumerOptions) check(cmd *cobra.Command) error {
	if err := config.Load(cmd.LocalFlags(), os.LookupEnv); err != nil {
		return err
	}
	var errs []error
	if o.nats.URL == "" {
		errs = append(errs, errors.New("--nats is required"))
	}
	for _, f := range []struct{ flag, value string }{{"tenant", o.consumer.Tenant}, {"name", o.consumer.Name}} {
		if !subject.Token(f.value) {
			errs = append(errs, notToken(f.flag, f.value))
		}
	}
	if o.consumer.AckWait <= 0 {
		errs = append(errs, fmt.Errorf("--ack-wait %s: must be greater than 0s", o.consumer.AckWait))
	}
	if o.consumer.MaxPending < 1 {
		errs = append(errs, fmt.Errorf("--max-pending %d: must be at least 1", o.consumer.MaxPending))
	}
	return errors.Join(append(errs, o.nats.Validate())...)
}

// consumerError wraps an error of the server with an exit status.
func consumerError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, js.ErrConsumerNotFound):
		return exit.With(exit.NotFound, err)
	case errors.Is(err, natsperm.ErrOther):
		return exit.With(exit.Refused, err)
	default:
		return natsstore.ReadError(err)
	}
}
