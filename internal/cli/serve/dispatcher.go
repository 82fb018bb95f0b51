package serve

import (
	"errors"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/host"
)

func serveDispatcherCommand() *cobra.Command {
	var o host.DispatcherOptions
	c := &cobra.Command{
		Use:   "dispatcher",
		Short: "Carry runs out",
		Long: `Serves waybill.dispatcher.v1.Dispatcher over gRPC, with health checks, and takes
runs from the queue in --nats: as many processes as there is work. What one leaves
behind when it dies, another takes up after --lease.`,
		Example: `  waybill serve dispatcher --nats nats://nats:4222 --redactor redactor:9092 --acceptor acceptor:9091 --eventlog eventlog:9093 --host-key-file /secrets/host.key`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := prepared(cmd, &o.ProcessOptions, func() error {
				return errors.Join(o.Validate(), o.Spread.Validate(host.DispatcherPeers...), o.Host.ValidateExecution(), o.Host.CheckKeyFile())
			})
			if err != nil {
				return err
			}
			return host.RunDispatcher(cmd.Context(), o, log)
		},
	}
	f := c.Flags()
	o.Flags(f, "127.0.0.1:9094")
	o.Spread.NATS.Flags(f, "required")
	o.Spread.PeerFlags(f, host.DispatcherPeers...)
	o.Host.KeyFileFlag(f)
	o.Host.ExecutionFlags(f, host.ServeDrain)
	f.BoolVar(&o.Host.TestSeams, "test-seams", false, "serve the protocol's test seams; never in production")
	return c
}
