package serve

import (
	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/hostflags"
	"waybill.dev/waybill/internal/host"
	"waybill.dev/waybill/internal/host/natsstore"
)

func eventLogCommand() *cobra.Command {
	var log hostflags.Log
	o := host.EventLogProcess{Process: host.DefaultProcess("127.0.0.1:9093"), NATS: natsstore.DefaultAddress(), Model: host.DefaultReadModel()}
	c := &cobra.Command{
		Use:   "eventlog",
		Short: "Answer questions about runs: snapshots, events, lists, streams",
		Long: `Serves waybill.eventlog.v1.EventLog over gRPC, with health checks. Each process
reads the run log of --nats into a read model: one of its own below --data-dir, or one
in PostgreSQL that all share. It may be lost at any time: it is made again from the log.`,
		Example: `  waybill serve eventlog --nats nats://nats:4222 --data-dir /var/lib/waybill`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := prepare(cmd, &log, o.Validate)
			if err != nil {
				return err
			}
			return host.RunEventLog(cmd.Context(), o, logger)
		},
	}
	f := c.Flags()
	log.Flags(f)
	hostflags.ConfigFile(f)
	hostflags.Process(f, &o.Process)
	hostflags.NATS(f, &o.NATS, "required")
	f.StringVar(&o.Model.DataDir, "data-dir", ".eventlog", "directory of the read model; used without --postgres-url-file")
	f.StringVar(&o.Model.PostgresURLFile, "postgres-url-file", "", "file with the URL of the PostgreSQL that all event logs of the host share for their read model; empty: a SQLite file in --data-dir")
	f.StringVar(&o.Model.PostgresSchema, "postgres-schema", o.Model.PostgresSchema, "begins the names of the schemas in --postgres-url-file's database")
	f.IntVar(&o.Model.PostgresConnections, "postgres-connections", o.Model.PostgresConnections, "connections to PostgreSQL, at most; one of them is kept for writing")
	return c
}
