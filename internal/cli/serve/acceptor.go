package serve

import (
	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/host"
	"waybill.dev/waybill/services/acceptor"
)

func serveAcceptorCommand() *cobra.Command {
	var o host.AcceptorOptions
	c := &cobra.Command{
		Use:   "acceptor",
		Short: "Take envelopes in for an agent runtime of your own",
		Long: `Serves waybill.acceptor.v1.Acceptor over gRPC, with reflection and health checks:
open a run, hand in envelopes, close the run. The run log is kept in the NATS
JetStream of --nats, or in an embedded one below --data-dir for a first try. Secrets
are taken out by the redactor at --redactor, or by one within this process, which
then serves waybill.redactor.v1.Redactor beside it.`,
		Example: `  waybill serve acceptor --data-dir .acceptor
  waybill serve acceptor --nats nats://nats:4222 --redactor redactor:9092 --kinds ./kinds`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := prepared(cmd, &o.ProcessOptions, o.Validate)
			if err != nil {
				return err
			}
			if o.NATS.URL == "" {
				host.AddThreads()
			}
			return host.RunAcceptor(cmd.Context(), o, log)
		},
	}
	f, def := c.Flags(), acceptor.DefaultConfig()
	o.Flags(f, "127.0.0.1:9091")
	o.NATS.Flags(f, "empty: an embedded one")
	f.StringVar(&o.DataDir, "data-dir", ".acceptor", "directory of the embedded NATS server's files; used without --nats")
	f.StringVar(&o.Redactor.Addr, "redactor", "", "HOST:PORT of a redactor service; empty: one within this process")
	f.StringVar(&o.Redactor.TokenFile, "redactor-token-file", "", "file with the bearer token for --redactor")
	f.StringVar(&o.Redactor.CA, "redactor-ca", "", "PEM certificates that vouch for --redactor; empty: those that the system trusts, and no TLS on loopback")
	f.StringVar(&o.Redactor.Cert, "redactor-cert", "", "PEM certificate chain to show to --redactor; empty: none")
	f.StringVar(&o.Redactor.Key, "redactor-key", "", "PEM key of --redactor-cert")
	f.BoolVar(&o.Redactor.Plaintext, "redactor-plaintext", false, "send secrets and the token to --redactor in clear, because something else guards the way")
	o.Assets.Flags(f)
	f.StringVar(&o.Kinds, "kinds", "", "directory of further envelope kinds, one KIND.schema.json a file")
	f.StringVar(&o.Packs, "packs", "", "directory of packs, one folder with a pack.json each; their envelope kinds are served")
	f.StringVar(&o.KindLint, "kind-lint", string(def.Lint), "strict, warn or off: what becomes of a kind whose schema models cannot be held to")
	f.StringVar(&o.Strictness, "envelope-strictness", string(def.Strictness), "warn or strict: whether a schemaVersion below the advertised one is refused")
	f.BoolVar(&o.TestSeams, "test-seams", false, "serve the protocol's test seams; never in production")
	f.IntVar(&o.EnvelopesPerTurn, "limit-envelopes-per-turn", def.Limits.EnvelopesPerTurn, "envelopes that one turn may hold")
	f.IntVar(&o.SchemaRounds, "limit-schema-rounds", def.Limits.SchemaRounds, "rounds about schemas that one emission may take")
	f.IntVar(&o.ClarificationRound, "limit-clarification-rounds", def.Limits.ClarificationRounds, "clarification requests that one node may make")
	return c
}
