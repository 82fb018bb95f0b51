package serve

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"waybill.dev/waybill/internal/cli/hostflags"
	"waybill.dev/waybill/internal/host"
)

func acceptorCommand() hostflags.Program {
	var log hostflags.Log
	o := host.DefaultAcceptorProcess("127.0.0.1:9091")
	c := &cobra.Command{
		Use:   "acceptor",
		Short: "Accept envelopes from an external agent runtime",
		Long: `Serves waybill.acceptor.v1.Acceptor over gRPC, with reflection and health checks:
open a run, submit envelopes, close the run. The run log is in the NATS JetStream of
--nats, or in an embedded one below --data-dir for a first try. Secrets are redacted
by the service at --redactor. Without it this process runs a redactor, which also
serves waybill.redactor.v1.Redactor.`,
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
	hostflags.Recovery(f, &o.Recovery)
	hostflags.ColdStore(f, &o.Cold)
	f.StringVar(&o.Redactor.Addr, "redactor", "", "HOST:PORT of a redactor service; empty runs one in this process")
	f.StringVar(&o.Redactor.TokenFile, "redactor-token-file", "", "file with the bearer token for --redactor")
	f.StringVar(&o.Redactor.CA, "redactor-ca", "", "PEM file of CAs for --redactor; empty uses the system's CAs, and no TLS on loopback")
	f.StringVar(&o.Redactor.Cert, "redactor-cert", "", "PEM client certificate chain for --redactor; empty disables it")
	f.StringVar(&o.Redactor.Key, "redactor-key", "", "PEM key of --redactor-cert")
	f.BoolVar(&o.Redactor.Plaintext, "redactor-plaintext", false, "send secrets and the token to --redactor without TLS, for networks that are secured otherwise")
	f.StringVar(&o.Packs, "packs", "", "directory of packs, one folder with a pack.json each; their envelope kinds are served")
	envelopeFlags(f, &o)
	assetFlags(f, &o)
	return hostflags.Checked(c, &log, o.Check)
}

// envelopeFlags are those of what is accepted.
func envelopeFlags(f *pflag.FlagSet, o *host.AcceptorProcess) {
	hostflags.Envelopes(f, &o.Envelopes)
	f.BoolVar(&o.Envelopes.TestSeams, "test-seams", false, "serve the protocol's test seams; never in production")
}

// assetFlags are those of images, sounds and files that are too large for the log.
func assetFlags(f *pflag.FlagSet, o *host.AcceptorProcess) {
	f.StringVar(&o.Assets.PublicURL, "public-url", "", "public URL of the asset server and prefix of asset URLs; empty disables asset storage, so that large assets are rejected")
	f.StringVar(&o.Assets.KeyFile, "asset-key-file", "", "file with the secret, at least 32 bytes, that signs asset URLs; the same for all asset servers; empty uses host.key in --data-dir")
	f.StringArrayVar(&o.Assets.Keys, "asset-keys", nil, "VERSION=KEY that signs asset URLs, the same for all asset servers (repeatable); default 1=host, the key of --asset-key-file")
	f.StringVar(&o.Assets.Addr, "assets-addr", "", "address of the HTTP asset server, GET /v1/assets/{token}; empty disables it")
	hostflags.Assets(f, &o.Assets)
	f.IntVar(&o.Envelopes.MaxInlineBytes, "max-inline-media-bytes", o.Envelopes.MaxInlineBytes, "maximum size of an asset recorded inline in its event")
	f.IntVar(&o.Envelopes.MaxMediaBytes, "max-media-base64-bytes", o.Envelopes.MaxMediaBytes, "maximum size of an asset accepted from a model, in base64 characters")
}
