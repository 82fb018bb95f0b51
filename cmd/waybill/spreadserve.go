package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/mtls"
	"waybill.dev/waybill/internal/rpc"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/services/gateway/auth"
)

// eventLogOptions are the flags of `waybill serve eventlog`.
type eventLogOptions struct {
	commonOptions
	spread spreadOptions
	host   devOptions
}

func serveEventLogCommand() *cobra.Command {
	var o eventLogOptions
	c := &cobra.Command{
		Use:   "eventlog",
		Short: "Answer questions about runs: snapshots, events, lists, streams",
		Long: `Serves waybill.eventlog.v1.EventLog over gRPC, with health checks. Each process
reads the run log of --nats into a read model: one of its own below --data-dir, or one
in PostgreSQL that all share. It may be lost at any time: it is made again from the log.`,
		Example: `  waybill serve eventlog --nats nats://nats:4222 --data-dir /var/lib/waybill`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := prepared(cmd, &o.commonOptions, func() error { return errors.Join(o.validate(), o.spread.validate(), o.host.postgres.validate()) })
			if err != nil {
				return err
			}
			return runEventLog(cmd.Context(), o, log)
		},
	}
	f := c.Flags()
	o.flags(f, "127.0.0.1:9093")
	o.spread.nats.flags(f, "required")
	f.StringVar(&o.host.dataDir, "data-dir", ".eventlog", "directory of the read model; used without --postgres-url-file")
	o.host.postgres.flags(f)
	return c
}

// runEventLog serves until ctx ends.
func runEventLog(ctx context.Context, o eventLogOptions, log *slog.Logger) error {
	began := time.Now()
	if o.host.postgres.urlFile == "" {
		if err := os.MkdirAll(o.host.dataDir, 0o700); err != nil {
			return fmt.Errorf("--data-dir %s: %w", o.host.dataDir, err)
		}
		unlock, err := lockDir(o.host.dataDir)
		if err != nil {
			return err
		}
		defer unlock()
	}
	h, err := newPart(o.commonOptions, o.host, log)
	if err != nil {
		return err
	}
	defer h.close()
	if err := h.openSpread(ctx, &o.spread, nameEventLog); err != nil {
		return orStopped(ctx, err)
	}
	if h.alone.calls.Exporter, err = h.opts.tracing.exporter(ctx, "waybill-eventlog", h.log, h.later); err != nil {
		return err
	}
	if err := h.buildEventLog(ctx, nil); err != nil {
		return err
	}
	h.alone.registry.MustRegister(h.events.Collectors()...)
	h.alone.registry.MustRegister(lostRecords(h.lost))
	told := uint64(0)
	return h.alone.run(ctx, began, func(ctx context.Context) error {
		err := h.stores.connected(ctx)
		if err == nil {
			_ = h.events.Compare(ctx) // a log that does not answer now is told of by the next check
		}
		if lost := h.lost(); lost != told {
			told = lost
			h.log.Error("the run log has lost records", "records", lost)
		}
		return errors.Join(err, h.events.Ready())
	}, nil)
}

// lost counts what the run log had and has no more, between other records and at its end.
func (h *host) lost() uint64 { return h.stores.log.Lost() + h.events.Lost() }

// orStopped is no error where the process was only told to end.
func orStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// newPart begins a service that carries a part of a host: its address is taken, and its
// metrics and probes are there while it waits for what it needs.
func newPart(c commonOptions, o devOptions, log *slog.Logger) (*host, error) {
	o.secretsFile, o.redactShapes, o.tracing, o.configFile = c.secretsFile, c.redactShapes, c.tracing, c.configFile
	specs, err := parseKeys(o.apiKeys)
	if err != nil {
		return nil, err
	}
	h := &host{log: log, opts: o}
	if err := h.openRedactor(specs); err != nil {
		return nil, err
	}
	if h.alone, err = newAlone(c, h.log); err != nil {
		return nil, err
	}
	h.group = &h.alone.group
	h.later(h.alone.close)
	h.alone.operate()
	return h, nil
}

// dispatcherOptions are the flags of `waybill serve dispatcher`.
type dispatcherOptions struct {
	commonOptions
	spread spreadOptions
	host   devOptions
}

// dispatcherPeers are the services that a dispatcher calls.
var dispatcherPeers = []string{nameRedactor, nameAcceptor, nameEventLog}

func serveDispatcherCommand() *cobra.Command {
	var o dispatcherOptions
	c := &cobra.Command{
		Use:   "dispatcher",
		Short: "Carry runs out",
		Long: `Serves waybill.dispatcher.v1.Dispatcher over gRPC, with health checks, and takes
runs from the queue in --nats: as many processes as there is work. What one leaves
behind when it dies, another takes up after --lease.`,
		Example: `  waybill serve dispatcher --nats nats://nats:4222 --redactor redactor:9092 --acceptor acceptor:9091 --eventlog eventlog:9093 --host-key-file /secrets/host.key`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := prepared(cmd, &o.commonOptions, func() error {
				return errors.Join(o.validate(), o.spread.validate(dispatcherPeers...), o.host.validateExecution(), o.host.checkKeyFile())
			})
			if err != nil {
				return err
			}
			return runDispatcher(cmd.Context(), o, log)
		},
	}
	f := c.Flags()
	o.flags(f, "127.0.0.1:9094")
	o.spread.nats.flags(f, "required")
	o.spread.peerFlags(f, dispatcherPeers...)
	o.host.keyFileFlag(f)
	o.host.executionFlags(f, serveDrain)
	f.BoolVar(&o.host.testSeams, "test-seams", false, "serve the protocol's test seams; never in production")
	return c
}

// runDispatcher serves until ctx ends.
func runDispatcher(ctx context.Context, o dispatcherOptions, log *slog.Logger) error {
	began := time.Now()
	if o.host.testSeams {
		o.host.prompts.canary = canaryValue()
	}
	h, err := newPart(o.commonOptions, o.host, log)
	if err != nil {
		return err
	}
	defer h.close()
	if err := h.readPacks(); err != nil {
		return err
	}
	if err := h.reach(&o.spread); err != nil {
		return err
	}
	if err := h.openSpread(ctx, &o.spread, nameDispatcher, dispatcherNeeds); err != nil {
		return orStopped(ctx, err)
	}
	if h.spans, err = h.opts.tracing.exporter(ctx, "waybill-dispatcher", h.log, h.later); err != nil {
		return err
	}
	if err := h.buildDispatcher(ctx, nil); err != nil {
		return err
	}
	h.alone.registry.MustRegister(h.dispatch.Collectors()...)
	// Definitions are registered through the same handlers as callers use.
	local := rpc.NewLocal(h.log, nil, nil)
	h.dispatch.Register(local)
	h.group.Start(lifecycle.Part{Name: "dispatcher calls", Run: local.Serve})
	loader := &workflowLoader{client: dispatcherv1.NewDispatcherClient(local), log: h.log}
	loaded := make(chan struct{})
	h.group.Start(lifecycle.Part{Name: "workflows", Run: func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-h.dispatch.Ready():
		}
		if err := loader.loadDirs(ctx, h.opts.workflows); err != nil {
			return err
		}
		close(loaded)
		return loader.watch(h.opts.workflows).Run(ctx)
	}})
	return h.alone.run(ctx, began, func(ctx context.Context) error {
		select {
		case <-loaded: // those that it was given, too: who finds it ready may run them
		default:
			return errors.New("it reads the workflow definitions")
		}
		return h.stores.connected(ctx)
	}, h.lookAround)
}

// gatewayOptions are the flags of `waybill serve gateway`.
type gatewayOptions struct {
	commonOptions // of which the address is not used: a gateway's is public
	spread        spreadOptions
	host          devOptions
}

// gatewayPeers are the services that a gateway calls.
var gatewayPeers = []string{nameRedactor, nameAcceptor, nameDispatcher, nameEventLog}

func serveGatewayCommand() *cobra.Command {
	var o gatewayOptions
	c := &cobra.Command{
		Use:   "gateway",
		Short: "Serve the public API: REST, gRPC, event streams, webhooks",
		Long: `Serves the public API over HTTP and gRPC, checks credentials, and delivers webhooks.
It keeps nothing: any number of them answer alike.`,
		Example: `  waybill serve gateway --nats nats://nats:4222 --redactor redactor:9092 --acceptor acceptor:9091 --dispatcher dispatcher:9094 --eventlog eventlog:9093 \
    --host-key-file /secrets/host.key --audit-key-file /secrets/audit.pem --api-key "$KEY=acme:*"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := prepared(cmd, &o.commonOptions, o.validate)
			if err != nil {
				return err
			}
			return runGateway(cmd.Context(), o, log)
		},
	}
	f := c.Flags()
	o.host.publicFlags(f, "127.0.0.1:8080", "127.0.0.1:9090")
	o.tlsFlags(f)
	o.tracing.flags(f)
	o.processFlags(f)
	o.spread.nats.flags(f, "required")
	o.spread.peerFlags(f, gatewayPeers...)
	o.host.keyFileFlag(f)
	return c
}

func (o *gatewayOptions) validate() error {
	var errs []error
	if (o.tlsCert == "") != (o.tlsKey == "") {
		errs = append(errs, errors.New("--tls-cert and --tls-key belong together; give both or neither"))
	}
	if err := o.tracing.config("").Validate(); err != nil {
		errs = append(errs, fmt.Errorf("--%w", err))
	}
	errs = append(errs, o.spread.validate(gatewayPeers...), o.host.validatePublic(), o.host.checkKeyFile())
	if len(o.host.apiKeys) == 0 {
		errs = append(errs, errors.New("--api-key: nobody could call; give KEY=TENANT:SCOPE,SCOPE or KEY=TENANT:*"))
	}
	if o.host.audit.on && o.host.audit.keyFile == "" {
		errs = append(errs, errors.New("--audit-key-file: all gateways sign the audit log with one key; give its file, or --audit=false"))
	}
	return errors.Join(errs...)
}

// runGateway serves until ctx ends.
func runGateway(ctx context.Context, o gatewayOptions, log *slog.Logger) error {
	began := time.Now()
	h := &host{log: log, opts: o.host, group: &lifecycle.Group{}}
	h.opts.secretsFile, h.opts.redactShapes = o.secretsFile, o.redactShapes
	defer h.close()
	defer func() { _ = h.group.Stop() }() // nothing, unless it could not be built
	specs, err := parseKeys(h.opts.apiKeys)
	if err != nil {
		return err
	}
	if err := h.openRedactor(specs); err != nil {
		return err
	}
	if err := h.listen(); err != nil {
		return err
	}
	h.state.set(errStarting)
	h.lacking.set(errStarting)
	if o.tlsCert != "" {
		if h.certs, err = mtls.Load(mtls.Files{Cert: o.tlsCert, Key: o.tlsKey}, mtls.Reread); err != nil {
			return fmt.Errorf("%w: --tls-cert, --tls-key: %w", errUsage, err)
		}
		h.later(h.certs.Close)
	}
	if h.spans, err = o.tracing.exporter(ctx, "waybill-gateway", h.log, h.later); err != nil {
		return err
	}
	if err := h.reach(&o.spread); err != nil {
		return err
	}
	if err := h.buildEarly(ctx, o, specs); err != nil {
		return orStopped(ctx, err)
	}
	h.start()
	h.group.Start(lifecycle.Part{Name: "health", Run: readiness{
		serving: &h.state, log: h.log,
		check:   h.takes,
		changed: func(err error) { h.gateway.SetServing(err == nil) },
		first:   func() error { return h.readyInfo(time.Since(began)).write(o.readyFile) },
	}.watch})
	return h.group.Wait(ctx)
}

// takes says why this gateway may get no requests; nil: it may. Once all other services have been
// there, the lack of one is no reason: what needs it is answered with 503, as by any other gateway,
// and the rest is served. Only what it writes itself, such as idempotency records, has to be safe.
func (h *host) takes(ctx context.Context) error {
	own, others := both(ctx, h.stores.connected, h.lookAround)
	h.lacking.set(errors.Join(own, others))
	return errors.Join(own, h.unmet())
}

// buildEarly builds the gateway, as soon as NATS is there; until then its address
// answers probes.
func (h *host) buildEarly(ctx context.Context, o gatewayOptions, specs []auth.Spec) error {
	stop := h.answerProbes()
	defer stop()
	if err := h.openSpread(ctx, &o.spread, "gateway", gatewayNeeds); err != nil {
		return err
	}
	return h.buildGateway(ctx, specs)
}
