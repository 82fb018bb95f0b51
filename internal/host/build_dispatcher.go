package host

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/services/dispatcher"
	"waybill.dev/waybill/services/dispatcher/completion"
	"waybill.dev/waybill/services/dispatcher/lease"
	"waybill.dev/waybill/services/dispatcher/snapshot"
	"waybill.dev/waybill/services/dispatcher/tenantlimit"
	"waybill.dev/waybill/services/dispatcher/vault"
	"waybill.dev/waybill/services/gateway/auth"
)

func (h *Host) buildDispatcher(context.Context, []auth.Spec) error {
	from := &h.opts.Models
	providers, err := from.Open(h.stores.Seams.Scripts, h.later)
	if err != nil {
		return err
	}
	credentials, err := from.Credentials()
	if err != nil {
		return err
	}
	h.later(func() { _ = credentials.Close() })
	policies, err := from.Policies()
	if err != nil {
		return fmt.Errorf("%w: %w", exit.ErrUsage, err)
	}
	settings, err := from.Settings()
	if err != nil {
		return fmt.Errorf("%w: %w", exit.ErrUsage, err)
	}
	limits, err := h.opts.openTenantLimits(h.Log)
	if err != nil {
		return err
	}
	tools, err := h.opts.tools.Runners(h.later)
	if err != nil {
		return err
	}
	secret, err := h.opts.key()
	if err != nil {
		return err
	}
	sealed, err := vault.New(h.stores.Sealed, secret)
	if err != nil {
		return err
	}
	snapshots, err := snapshot.NewStore(h.stores.Snapshots, secret)
	if err != nil {
		return err
	}
	cfg := dispatcher.DefaultConfig()
	cfg.Lease, cfg.MaxRuns, cfg.TestSeams = h.leaseConfig(), h.opts.maxRuns, h.opts.TestSeams
	cfg.Intake.MaxWait = h.opts.maxQueueWait
	cfg.Limits.MaxNodeExecutions, cfg.Limits.MaxDuration = h.opts.runLimits.MaxNodeExecutions, h.opts.runLimits.MaxRunDuration
	cfg.SelfHosted, cfg.Keyed, cfg.Packs = from.SelfHosted(), from.Keyed(), h.packs
	cfg.Completion.TenantKeyed = from.TenantKeyed()
	cfg.Completion.Providers = settings
	cfg.Prompts, cfg.RuntimeCapabilities = h.prompts, h.opts.runtimeCapabilities
	cfg.Completion.TrustsUnknown = from.UnknownModels == models.TrustUnknown
	cfg.Completion.Directive = completion.Directive(from.Directive)
	cfg.Completion.HidesFallback, cfg.Completion.WithholdsRefusals = from.HidesFallback, from.RefusalText == models.NoRefusals
	cfg.Completion.Defaults.Provider, cfg.Completion.Defaults.Model, _ = strings.Cut(from.DefaultModel, "/")
	if _, ok := providers.Lookup(cfg.Completion.Defaults.Provider); !ok {
		return fmt.Errorf("%w: --default-model %q: no such provider; there are %v, and --provider adds one", exit.ErrUsage, from.DefaultModel, providers.IDs())
	}
	deps := dispatcher.Deps{
		Log: h.stores.Log, Queue: h.stores.Queue, Workflows: h.stores.Workflows, Claims: h.stores.Claims, Quarantine: h.stores.Quarantine, Leases: h.stores.Leases, Peers: h.stores.Peers,
		Waiting: h.stores.Waiting, Rates: h.stores.Rates, TenantLimits: limits,
		Providers: providers, Credentials: credentials, Policies: policies, Catalogue: h.catalogue, Tools: tools, Vault: sealed, Snapshots: snapshots, Scripts: h.stores.Seams.Scripts, Clock: time.Now, Logger: h.Log,
		Acceptor: h.Clients.acceptor, Redactor: h.Clients.redactor, EventLog: h.Clients.events,
	}
	if h.spans != nil {
		deps.Spans = h.spans
	}
	if h.dispatch, err = dispatcher.New(cfg, deps); err != nil {
		return err
	}
	h.Group.Start(lifecycle.Part{
		Name: "dispatcher", Run: h.dispatch.Run,
		Quiesce: h.dispatch.Quiesce, Stop: h.dispatch.Drain, StopWithin: max(h.opts.drainTimeout, time.Millisecond),
	})
	h.Clients.Dispatcher = dispatcherv1.NewDispatcherClient(h.serve("dispatcher", h.dispatch.Register))
	return nil
}

// leaseConfig is how this process holds its lease. A host on an embedded NATS server has its data
// directory to itself: no other dispatcher can be running.
func (h *Host) leaseConfig() lease.Config {
	name, _ := os.Hostname() // for people; a pod's name
	return lease.Config{Duration: h.opts.lease, Host: name, Sole: h.NATS != nil}
}

// tenantLimits opens the file of --tenant-limits; nil: there is none.
func (o *Options) openTenantLimits(log *slog.Logger) (*tenantlimit.Source, error) {
	if o.tenantLimits == "" {
		return nil, nil
	}
	limits, err := tenantlimit.Open(o.tenantLimits, log)
	if err != nil {
		return nil, fmt.Errorf("%w: --tenant-limits %s: %w", exit.ErrUsage, o.tenantLimits, hostfile.WithoutPath(err))
	}
	return limits, nil
}
