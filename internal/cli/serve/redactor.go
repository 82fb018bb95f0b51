package serve

import (
	"errors"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/host"
)

func serveRedactorCommand() *cobra.Command {
	var o host.RedactorOptions
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
			log, err := prepared(cmd, &o.ProcessOptions, func() error { return errors.Join(o.Validate(), o.Host.ValidateSecrets()) })
			if err != nil {
				return err
			}
			return host.RunRedactor(cmd.Context(), o, log)
		},
	}
	o.Flags(c.Flags(), "127.0.0.1:9092")
	o.Host.SecretFlags(c.Flags())
	return c
}
