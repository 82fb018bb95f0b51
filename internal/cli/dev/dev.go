// Package dev has the command that runs a whole host in one process.
package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/client"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/config"
	"waybill.dev/waybill/internal/host"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/obs"
	"waybill.dev/waybill/services/acceptor/accept"
)

func Command() *cobra.Command {
	var o host.Options
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
				return fmt.Errorf("%w: %w", exit.ErrUsage, err)
			}
			if err := o.Validate(); err != nil {
				return fmt.Errorf("%w: %w", exit.ErrUsage, err)
			}
			log, err := obs.NewLogger(cmd.ErrOrStderr(), o.LogLevel, o.LogFormat)
			if err != nil {
				return fmt.Errorf("%w: %w", exit.ErrUsage, err)
			}
			if o.Durability == host.DurabilitySync {
				host.AddThreads()
			}
			return runDev(cmd.Context(), o, log, cmd.OutOrStdout())
		},
	}
	f := c.Flags()
	o.Reflection = true // who develops asks with grpcurl; in production it is off (OpenWOP host contract §9.4)
	o.PublicFlags(f, "127.0.0.1:8080", "127.0.0.1:9090")
	o.ExecutionFlags(f, host.DevDrain)
	f.StringArrayVar(&o.AssetKeys, "asset-keys", nil, "VERSION=KEY that signs the URLs of assets: base64 of 32 random bytes, or host (repeatable); the highest signs, all are good; default 1=host")
	f.StringVar(&o.NATSAddr, "nats-addr", "", "address where NATS clients may read run events (user = tenant, password = API key); empty: nowhere")
	f.StringVar(&o.DataDir, "data-dir", ".waybill", "directory of all state")
	f.StringVar(&o.Kinds, "kinds", "", "directory of further envelope kinds, one KIND.schema.json a file")
	f.StringVar(&o.KindLint, "kind-lint", "warn", "strict, warn or off: what becomes of a kind whose schema models cannot be held to")
	f.StringVar(&o.Strictness, "envelope-strictness", "warn", "warn or strict: whether a schemaVersion below the advertised one is refused")
	f.StringVar(&o.SecretsFile, "secrets-file", "", "YAML file of secret ids and values that must never show, for everybody")
	f.BoolVar(&o.RedactShapes, "redact-shapes", true, "also take out text that looks like a secret, though nobody has registered it")
	f.StringVar(&o.Durability, "durability", host.DurabilitySync, "sync: an acknowledged write is on disk; process: it survives the process, not a power cut")
	f.IntVar(&o.MaxInline, "max-inline-media-bytes", accept.DefaultMaxInlineBytes, "largest image, sound or file that is recorded within its event; larger ones are stored and recorded as a URL")
	f.IntVar(&o.MaxMedia, "max-media-base64-bytes", accept.DefaultMaxMediaBytes, "largest image, sound or file that is taken from a model, in characters of base64")
	o.Tracing.Flags(f)
	f.StringVar(&o.LogLevel, "log-level", "warn", "debug, info, warn or error")
	f.StringVar(&o.LogFormat, "log-format", obs.FormatText, "text or json")
	f.BoolVar(&o.Demo, "demo", false, "run the example workflow once and print what came out")
	f.BoolVar(&o.DemoRuns, "demo-runs", true, "serve the demo workflows and, in a data directory that is new, begin with a run of each")
	f.StringVar(&o.ReadyFile, "ready-file", "", "file to write the addresses to, as JSON, once the host is ready")
	f.StringVar(&o.ConfigFile, "config", "", "YAML file of flag names and values")
	return c
}

// runDev runs the host until ctx ends.
func runDev(ctx context.Context, o host.Options, log *slog.Logger, out io.Writer) error {
	began := time.Now()
	isNew := o.DemoRuns && empty(o.DataDir)
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return fmt.Errorf("--data-dir %s: %w", o.DataDir, err)
	}
	unlock, err := hostfile.LockDir(o.DataDir)
	if err != nil {
		return err
	}
	defer unlock()
	h, err := host.Compose(ctx, o, log)
	if err != nil {
		return err
	}
	defer h.Close()
	h.Start()
	if err := h.UntilReady(ctx); err != nil {
		return errors.Join(err, h.Group.Stop())
	}
	loader := &host.WorkflowLoader{Client: h.Clients.Dispatcher, Log: h.Log}
	if err := errors.Join(loader.LoadExamples(ctx), o.LoadDemo(ctx, loader), loader.LoadDirs(ctx, o.Workflows)); err != nil {
		return errors.Join(err, h.Group.Stop())
	}
	h.Group.Start(loader.Watch(o.Workflows))
	ready := h.ReadyInfo(time.Since(began))
	if err := ready.Write(o.ReadyFile); err != nil {
		return errors.Join(err, h.Group.Stop())
	}
	banner(out, o, ready, h.ConsoleLink(ready))
	if isNew {
		c, err := client.New(ready.HTTP, client.WithToken(host.FirstKey(o.APIKeys)))
		if err != nil {
			return errors.Join(err, h.Group.Stop())
		}
		startDemoRuns(ctx, c, h.Log)
	}
	if o.Demo {
		if err := demo(ctx, out, ready, host.FirstKey(o.APIKeys)); err != nil && ctx.Err() == nil {
			return errors.Join(fmt.Errorf("demo run: %w", err), h.Group.Stop())
		}
	}
	return h.Group.Wait(ctx)
}
