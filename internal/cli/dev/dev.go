// Package dev has the command that runs a whole host in one process.
package dev

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/cli/hostflags"
	"waybill.dev/waybill/internal/config"
	"waybill.dev/waybill/internal/host"
	"waybill.dev/waybill/internal/obs"
)

// options are the flags of `waybill dev`.
type options struct {
	host host.Options
	log  hostflags.Log
	// demo: the example workflow is run once.
	demo      bool
	readyFile string
}

// Command runs the whole host.
func Command() *cobra.Command { return Program().Command }

// Program runs the whole host.
func Program() hostflags.Program {
	o := options{host: host.DefaultOptions()}
	c := &cobra.Command{
		Use:   "dev",
		Short: "Run the whole host in one process, on embedded NATS and SQLite",
		Long: `Runs gateway, acceptor, dispatcher, event log and redactor in one process, on an
embedded NATS JetStream server and a SQLite read model. State is kept in --data-dir.
Every flag can be set as an environment variable (WAYBILL_ and the flag's name in
capitals) or in the --config file; flags beat environment beats file.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.Load(cmd.Flags(), os.LookupEnv); err != nil {
				return exit.With(exit.Usage, err)
			}
			if err := o.host.Validate(); err != nil {
				return exit.With(exit.Usage, err)
			}
			log, err := obs.NewLogger(cmd.ErrOrStderr(), o.log.Level, o.log.Format)
			if err != nil {
				return exit.With(exit.Usage, err)
			}
			if o.host.Log.Durability == host.DurabilitySync {
				host.AddThreads()
			}
			return run(cmd.Context(), o, log, cmd.OutOrStdout())
		},
	}
	f, h := c.Flags(), &o.host
	h.Public.Reflection = true // for grpcurl during development; in production it is off (OpenWOP host contract §9.4)
	hostflags.Public(f, &h.Public)
	h.Execution.DrainTimeout = 5 * time.Second // a terminal should get its prompt back soon
	hostflags.Execution(f, &h.Execution)
	hostflags.Envelopes(f, &h.Envelopes)
	hostflags.Secrets(f, &h.Secrets)
	hostflags.Telemetry(f, &h.Telemetry)
	o.log.Flags(f)
	hostflags.ConfigFile(f)
	f.StringArrayVar(&h.AssetKeys, "asset-keys", nil, "VERSION=KEY that signs asset URLs: base64 of 32 random bytes, or host (repeatable); the highest version signs, all are accepted; default 1=host")
	f.StringVar(&h.Log.NATSAddr, "nats-addr", "", "address where NATS clients can read run events (user = tenant, password = API key); empty disables it")
	f.StringVar(&h.DataDir, "data-dir", ".waybill", "directory of all state")
	hostflags.IndexPayloads(f, &h.IndexPayloads)
	f.StringVar(&h.Log.Durability, "durability", h.Log.Durability, "sync: an acknowledged write is on disk; process: it survives a process crash, but not a power failure")
	hostflags.HotWindow(f, &h.Log.HotWindow)
	f.BoolVar(&h.Log.GiveUpSealed, "give-up-lost-runs", false, "give up the sealed runs that cold.db lacks, after a loss of the file without a backup; for one start")
	hostflags.Recovery(f, &h.Log.Recovery)
	f.IntVar(&h.Envelopes.MaxInlineBytes, "max-inline-media-bytes", h.Envelopes.MaxInlineBytes, "maximum size of an asset recorded inline in its event; larger assets are stored and recorded as a URL")
	f.IntVar(&h.Envelopes.MaxMediaBytes, "max-media-base64-bytes", h.Envelopes.MaxMediaBytes, "maximum size of an asset accepted from a model, in base64 characters")
	f.BoolVar(&o.demo, "demo", false, "run the example workflow once and print the result")
	f.BoolVar(&h.DemoRuns, "demo-runs", true, "serve the demo workflows and, in a new data directory, run each once")
	f.StringVar(&o.readyFile, "ready-file", "", "file to write the addresses to, as JSON, once the host is ready")
	return hostflags.Checked(c, &o.log, h.Check)
}

// run runs the host until ctx ends.
func run(ctx context.Context, o options, log *slog.Logger, out io.Writer) error {
	isNew := o.host.DemoRuns && empty(o.host.DataDir)
	h, err := host.New(ctx, o.host, log)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.Start(ctx); err != nil {
		return err
	}
	at := h.Addresses()
	if err := at.Write(o.readyFile); err != nil {
		return h.Stop(err)
	}
	banner(out, o, at, h.ConsoleLink())
	key := host.FirstKey(o.host.Public.APIKeys)
	if isNew {
		c, err := client.New(at.HTTP, client.WithToken(key))
		if err != nil {
			return h.Stop(err)
		}
		startDemoRuns(ctx, c, h.Log())
	}
	if o.demo {
		if err := demo(ctx, out, at, key); err != nil && ctx.Err() == nil {
			return h.Stop(fmt.Errorf("demo run: %w", err))
		}
	}
	return h.Wait(ctx)
}
