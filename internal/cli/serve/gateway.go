package serve

import (
	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/hostflags"
	"waybill.dev/waybill/internal/host"
	"waybill.dev/waybill/internal/host/natsstore"
)

func gatewayCommand() hostflags.Program {
	var log hostflags.Log
	o := host.GatewayProcess{
		Public:    host.DefaultPublic(),
		Secrets:   host.DefaultSecrets(),
		Telemetry: host.DefaultTelemetry(),
		NATS:      natsstore.DefaultAddress(),
		Cold:      host.DefaultColdStore(),
	}
	c := &cobra.Command{
		Use:   "gateway",
		Short: "Serve the public API: REST, gRPC, event streams, webhooks",
		Long: `Serves the public API over HTTP and gRPC, checks credentials, and delivers webhooks.
It is stateless: run any number of replicas.`,
		Example: `  waybill serve gateway --nats nats://nats:4222 --redactor redactor:9092 --acceptor acceptor:9091 --dispatcher dispatcher:9094 --eventlog eventlog:9093 \
    --host-key-file /secrets/host.key --audit-key-file /secrets/audit.pem --api-key "$KEY=acme:*"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := prepare(cmd, &log, o.Validate)
			if err != nil {
				return err
			}
			return host.RunGateway(cmd.Context(), o, logger)
		},
	}
	f := c.Flags()
	log.Flags(f)
	hostflags.ConfigFile(f)
	hostflags.Public(f, &o.Public)
	hostflags.TLS(f, &o.TLS)
	hostflags.Telemetry(f, &o.Telemetry)
	hostflags.Secrets(f, &o.Secrets)
	hostflags.ReadyFile(f, &o.ReadyFile)
	hostflags.NATS(f, &o.NATS, "required")
	hostflags.Peers(f, &o.Peers, host.GatewayPeers()...)
	hostflags.HostKey(f, &o.Key)
	hostflags.ColdStore(f, &o.Cold)
	return hostflags.Checked(c, &log, o.Check)
}
