package serve

import (
	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/hostflags"
	"waybill.dev/waybill/internal/host"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/internal/host/tools"
)

func redactorCommand() *cobra.Command {
	var log hostflags.Log
	o := host.RedactorProcess{
		Process: host.DefaultProcess("127.0.0.1:9092"),
		Known:   host.Credentials{Models: &models.Options{SecretsOnly: true}, Tools: &tools.Options{}},
	}
	c := &cobra.Command{
		Use:   "redactor",
		Short: "Take secrets out of documents, texts and streams",
		Long: `Serves waybill.redactor.v1.Redactor over gRPC, with reflection and health checks.
Secrets live in its memory only, and die with it: callers register those of their
runs, and register them again when it was restarted. Of several, each knows the runs
of some tenants: whoever calls them finds out which. What a host's other services are
given of secrets is given to its redactors as well, with the same flags and variables:
only so it never shows.`,
		Example: `  waybill serve redactor --secrets-file secrets.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			logger, err := prepare(cmd, &log, o.Validate)
			if err != nil {
				return err
			}
			return host.RunRedactor(cmd.Context(), o, logger)
		},
	}
	f := c.Flags()
	log.Flags(f)
	hostflags.ConfigFile(f)
	hostflags.Process(f, &o.Process)
	hostflags.Credentials(f, &o.Known)
	f.BoolVar(&o.TestSeams, "test-seams", false, "know the secret that the protocol's tests plant; never in production")
	return c
}
