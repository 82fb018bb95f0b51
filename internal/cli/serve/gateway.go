package serve

import (
	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/host"
)

func serveGatewayCommand() *cobra.Command {
	var o host.GatewayOptions
	c := &cobra.Command{
		Use:   "gateway",
		Short: "Serve the public API: REST, gRPC, event streams, webhooks",
		Long: `Serves the public API over HTTP and gRPC, checks credentials, and delivers webhooks.
It keeps nothing: any number of them answer alike.`,
		Example: `  waybill serve gateway --nats nats://nats:4222 --redactor redactor:9092 --acceptor acceptor:9091 --dispatcher dispatcher:9094 --eventlog eventlog:9093 \
    --host-key-file /secrets/host.key --audit-key-file /secrets/audit.pem --api-key "$KEY=acme:*"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := prepared(cmd, &o.ProcessOptions, o.Validate)
			if err != nil {
				return err
			}
			return host.RunGateway(cmd.Context(), o, log)
		},
	}
	f := c.Flags()
	o.Host.PublicFlags(f, "127.0.0.1:8080", "127.0.0.1:9090")
	o.TLSFlags(f)
	o.Tracing.Flags(f)
	o.ProcessFlags(f)
	o.Spread.NATS.Flags(f, "required")
	o.Spread.PeerFlags(f, host.GatewayPeers...)
	o.Host.KeyFileFlag(f)
	return c
}
