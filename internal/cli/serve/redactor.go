package serve

import (
	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/cli/hostflags"
	"waybill.dev/waybill/internal/host"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/internal/host/tools"
)

func redactorCommand() hostflags.Program {
	var log hostflags.Log
	o := host.RedactorProcess{
		Process: host.DefaultProcess("127.0.0.1:9092"),
		Known:   host.Credentials{Models: &models.Options{SecretsOnly: true}, Tools: &tools.Options{}},
	}
	c := &cobra.Command{
		Use:   "redactor",
		Short: "Redact secrets in documents, texts and streams",
		Long: `Serves waybill.redactor.v1.Redactor over gRPC, with reflection and health checks.
Secrets are in its memory only. Callers register the secrets of their runs, and
register them again after a restart. Several redactors share the tenants; callers
choose the redactor of a tenant themselves. Give the redactors the same secret flags
and variables as the host's other services, so that those secrets are redacted, too.`,
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
	f.BoolVar(&o.TestSeams, "test-seams", false, "register the canary secret of the protocol's tests; never in production")
	return hostflags.Checked(c, &log, o.Check)
}
