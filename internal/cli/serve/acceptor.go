package serve

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/cli/hostflags"
	"waybill.dev/waybill/internal/host"
)

func acceptorCommand() *cobra.Command {
	var log hostflags.Log
	o := host.DefaultAcceptorProcess("127.0.0.1:9091")
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
			logger, err := prepare(cmd, &log, o.Validate)
			if err != nil {
				return err
			}
			if o.NATS.URL == "" {
				host.AddThreads()
			}
			return host.RunAcceptor(cmd.Context(), o, logger)
		},
	}
	f := c.Flags()
	log.Flags(f)
	hostflags.ConfigFile(f)
	hostflags.Process(f, &o.Process)
	hostflags.NATS(f, &o.NATS, "empty: an embedded one")
	f.StringVar(&o.DataDir, "data-dir", ".acceptor", "directory of the embedded NATS server's files; used without --nats")
	f.StringVar(&o.Redactor.Addr, "redactor", "", "HOST:PORT of a redactor service; empty: one within this process")
	f.StringVar(&o.Redactor.TokenFile, "redactor-token-file", "", "file with the bearer token for --redactor")
	f.StringVar(&o.Redactor.CA, "redactor-ca", "", "PEM certificates that vouch for --redactor; empty: those that the system trusts, and no TLS on loopback")
	f.StringVar(&o.Redactor.Cert, "redactor-cert", "", "PEM certificate chain to show to --redactor; empty: none")
	f.StringVar(&o.Redactor.Key, "redactor-key", "", "PEM key of --redactor-cert")
	f.BoolVar(&o.Redactor.Plaintext, "redactor-plaintext", false, "send secrets and the token to --redactor in clear, because something else guards the way")
	f.StringVar(&o.Packs, "packs", "", "directory of packs, one folder with a pack.json each; their envelope kinds are served")
	envelopeFlags(f, &o)
	assetFlags(f, &o)
	return c
}

// envelopeFlags are those of what is accepted.
func envelopeFlags(f *pflag.FlagSet, o *host.AcceptorProcess) {
	hostflags.Envelopes(f, &o.Envelopes)
	f.BoolVar(&o.Envelopes.TestSeams, "test-seams", false, "serve the protocol's test seams; never in production")
	f.IntVar(&o.Limits.EnvelopesPerTurn, "limit-envelopes-per-turn", o.Limits.EnvelopesPerTurn, "envelopes that one turn may hold")
	f.IntVar(&o.Limits.SchemaRounds, "limit-schema-rounds", o.Limits.SchemaRounds, "rounds about schemas that one emission may take")
	f.IntVar(&o.Limits.ClarificationRounds, "limit-clarification-rounds", o.Limits.ClarificationRounds, "clarification requests that one node may make")
}

// assetFlags are those of images, sounds and files that are too large for the log.
func assetFlags(f *pflag.FlagSet, o *host.AcceptorProcess) {
	f.StringVar(&o.Assets.PublicURL, "public-url", "", "URL at which clients reach what serves assets; their URLs begin with it; empty: none are kept, and large ones refused")
	f.StringVar(&o.Assets.KeyFile, "asset-key-file", "", "file with the secret, of 32 bytes at least, that URLs of assets are signed with; the same for all that serve them; empty: host.key in --data-dir")
	f.StringArrayVar(&o.Assets.Keys, "asset-keys", nil, "VERSION=KEY that signs URLs of assets, the same for all that serve them (repeatable); default 1=host, the key of --asset-key-file")
	f.StringVar(&o.Assets.Addr, "assets-addr", "", "address where assets are served over HTTP, GET /v1/assets/{token}; empty: nowhere, others serve them")
	f.IntVar(&o.Envelopes.MaxInlineBytes, "max-inline-media-bytes", o.Envelopes.MaxInlineBytes, "largest image, sound or file that is recorded within its event")
	f.IntVar(&o.Envelopes.MaxMediaBytes, "max-media-base64-bytes", o.Envelopes.MaxMediaBytes, "largest image, sound or file that is taken from a model, in characters of base64")
}
