package serve

import (
	"errors"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/host"
)

func serveEventLogCommand() *cobra.Command {
	var o host.EventLogOptions
	c := &cobra.Command{
		Use:   "eventlog",
		Short: "Answer questions about runs: snapshots, events, lists, streams",
		Long: `Serves waybill.eventlog.v1.EventLog over gRPC, with health checks. Each process
reads the run log of --nats into a read model: one of its own below --data-dir, or one
in PostgreSQL that all share. It may be lost at any time: it is made again from the log.`,
		Example: `  waybill serve eventlog --nats nats://nats:4222 --data-dir /var/lib/waybill`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := prepared(cmd, &o.ProcessOptions, func() error { return errors.Join(o.Validate(), o.Spread.Validate(), o.Host.Postgres.Validate()) })
			if err != nil {
				return err
			}
			return host.RunEventLog(cmd.Context(), o, log)
		},
	}
	f := c.Flags()
	o.Flags(f, "127.0.0.1:9093")
	o.Spread.NATS.Flags(f, "required")
	f.StringVar(&o.Host.DataDir, "data-dir", ".eventlog", "directory of the read model; used without --postgres-url-file")
	o.Host.Postgres.Flags(f)
	return c
}
