package serve

import (
	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/hostflags"
	"waybill.dev/waybill/internal/host"
	"waybill.dev/waybill/internal/host/natsstore"
	"waybill.dev/waybill/protocol/workflow"
)

func dispatcherCommand() hostflags.Program {
	var log hostflags.Log
	o := host.DispatcherProcess{
		Process:   host.DefaultProcess("127.0.0.1:9094"),
		NATS:      natsstore.DefaultAddress(),
		Execution: host.DefaultExecution(),
		Cold:      host.DefaultColdStore(),
		HotWindow: workflow.Unlimited,
	}
	c := &cobra.Command{
		Use:   "dispatcher",
		Short: "Execute runs",
		Long: `Serves waybill.dispatcher.v1.Dispatcher over gRPC, with health checks, and executes
runs of the queue in --nats. Run as many processes as the load needs. If one dies,
others take over its runs after --lease.`,
		Example: `  waybill serve dispatcher --nats nats://nats:4222 --redactor redactor:9092 --acceptor acceptor:9091 --eventlog eventlog:9093 --host-key-file /secrets/host.key`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := prepare(cmd, &log, o.Validate)
			if err != nil {
				return err
			}
			return host.RunDispatcher(cmd.Context(), o, logger)
		},
	}
	f := c.Flags()
	log.Flags(f)
	hostflags.ConfigFile(f)
	hostflags.Process(f, &o.Process)
	hostflags.NATS(f, &o.NATS, "required")
	hostflags.Peers(f, &o.Peers, host.DispatcherPeers()...)
	hostflags.HostKey(f, &o.Key)
	hostflags.ColdStore(f, &o.Cold)
	hostflags.HotWindow(f, &o.HotWindow)
	f.BoolVar(&o.GiveUpSealed, "give-up-lost-runs", false, "give up the sealed runs that the cold store lacks, after a loss of it without a backup; for one start")
	hostflags.Execution(f, &o.Execution)
	hostflags.AIEnvelope(f, &o.Execution.AIEnvelope)
	f.BoolVar(&o.Execution.TestSeams, "test-seams", false, "serve the protocol's test seams; never in production")
	return hostflags.Checked(c, &log, o.Check)
}
