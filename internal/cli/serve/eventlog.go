package serve

import (
	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/hostflags"
	"waybill.dev/waybill/internal/host"
	"waybill.dev/waybill/internal/host/natsstore"
)

func eventLogCommand() hostflags.Program {
	var log hostflags.Log
	o := host.EventLogProcess{
		Process: host.DefaultProcess("127.0.0.1:9093"),
		NATS:    natsstore.DefaultAddress(),
		Model:   host.DefaultReadModel(),
		Cold:    host.DefaultColdStore(),
	}
	c := &cobra.Command{
		Use:   "eventlog",
		Short: "Serve the read model: snapshots, events, lists, streams",
		Long: `Serves waybill.eventlog.v1.EventLog over gRPC, with health checks. Each process
reads the run log of --nats into a read model: its own below --data-dir, or a shared
one in PostgreSQL. The read model can be deleted at any time and is rebuilt from the log.`,
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
	f.StringVar(&o.Model.PostgresURLFile, "postgres-url-file", "", "file with the URL of the PostgreSQL database that all event logs share; empty uses SQLite in --data-dir")
	f.StringVar(&o.Model.PostgresSchema, "postgres-schema", o.Model.PostgresSchema, "prefix of the schema names in the database of --postgres-url-file")
	f.IntVar(&o.Model.PostgresConnections, "postgres-connections", o.Model.PostgresConnections, "maximum connections to PostgreSQL; one is reserved for writes")
	hostflags.IndexPayloads(f, &o.Model.IndexPayloads)
	hostflags.ColdStore(f, &o.Cold)
	return hostflags.Checked(c, &log, o.Check)
}
