package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"waybill.dev/waybill/internal/archive"
	"waybill.dev/waybill/internal/archive/store"
	"waybill.dev/waybill/internal/cli/exit"
	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/protocol/pack"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/dispatcher"
	"waybill.dev/waybill/services/dispatcher/engine/cleartext"
	"waybill.dev/waybill/services/dispatcher/engine/lease"
	"waybill.dev/waybill/services/dispatcher/engine/snapshot"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
	"waybill.dev/waybill/services/dispatcher/queue/tenantlimit"
	"waybill.dev/waybill/services/dispatcher/seam"
	"waybill.dev/waybill/services/dispatcher/tool"
)

// executables are the models, packs and prompt templates of a host.
type executables struct {
	catalogue *catalogue.Catalogue
	packs     []*pack.Pack
	prompts   dispatcher.PromptConfig
	// secrets are those of the test seams; empty without them.
	secrets map[string]string
}

// offers returns what the host provides to packs.
func (o *Execution) offers(c *catalogue.Catalogue) pack.Host {
	offers := packs.HostOffers(packs.Models{
		Catalogue: c, Providers: o.Models.IDs(), Default: o.Models.DefaultModel,
		TrustsUnknown: o.Models.UnknownModels == models.TrustUnknown,
	})
	if !o.AIEnvelope {
		offers = packs.WithoutEnvelopes(offers)
	}
	return offers
}

// loadExecutables reads them. builtin are packs that come with the binary; canary is the secret of
// the test seams, empty without them.
func loadExecutables(o *Execution, canary string, log *slog.Logger, builtin ...pack.Source) (x executables, err error) {
	if x.catalogue, err = models.LoadCatalogue(o.Models.CatalogueFile); err != nil {
		return x, exit.With(exit.Usage, err)
	}
	if x.packs, err = packs.Load(o.Packs, o.offers(x.catalogue), log, builtin...); err != nil {
		return x, err
	}
	x.secrets = packs.TestSecrets(canary)
	x.prompts, err = o.Prompts.Config(x.packs, log)
	return x, err
}

// newDispatcher creates the dispatcher and starts executing runs. sole: no other dispatcher can be
// running.
func (c *core) newDispatcher(o *Execution, key Key, x executables, sole bool) (*dispatcher.Service, error) {
	cfg, err := o.dispatcherConfig(x, sole)
	if err != nil {
		return nil, err
	}
	deps, err := c.dispatcherDeps(o, key)
	if err != nil {
		return nil, err
	}
	deps.Catalogue = x.catalogue
	if o.TestSeams {
		deps.Seams = &seam.Seams{Scripts: c.stores.Seams.Scripts, Secrets: x.secrets}
	}
	s, err := dispatcher.New(cfg, deps)
	if err != nil {
		return nil, err
	}
	c.group.Start(lifecycle.Part{
		Name: "dispatcher", Run: s.Run,
		Quiesce: s.Quiesce, Stop: s.Drain, StopWithin: max(o.DrainTimeout, time.Millisecond),
	})
	return s, nil
}

func (o *Execution) dispatcherConfig(x executables, sole bool) (dispatcher.Config, error) {
	cfg := dispatcher.DefaultConfig()
	settings, err := o.Models.Settings()
	if err != nil {
		return cfg, exit.With(exit.Usage, err)
	}
	name, _ := os.Hostname() // for operators; a pod's name
	cfg.Lease, cfg.AckWait = lease.Config{Duration: o.Lease, Host: name, Sole: sole}, o.ackWait(sole)
	cfg.MaxRuns, cfg.Intake.MaxWait = o.MaxRuns, o.MaxQueueWait
	cfg.Limits.MaxNodeExecutions, cfg.Limits.MaxDuration = o.RunLimits.MaxNodeExecutions, o.RunLimits.MaxRunDuration
	cfg.Limits.QuestionTimeout = o.QuestionTimeout
	cfg.Retention, err = workflow.ParseRetention(o.Retention)
	if err != nil {
		return cfg, exit.Usagef("--retention %q: %w", o.Retention, err)
	}
	cfg.RetentionRate = o.RetentionRate
	cfg.NoAIEnvelope = !o.AIEnvelope
	cfg.SelfHosted, cfg.Keyed = o.Models.SelfHosted(), o.Models.Keyed()
	cfg.Packs, cfg.Prompts, cfg.RuntimeCapabilities = x.packs, x.prompts, o.RuntimeCapabilities
	ask := &cfg.Completion
	ask.MaxAttempts, ask.Multiplier = o.MaxRetryAttempts, o.TruncationMultiplier
	ask.TenantKeyed, ask.Providers = o.Models.TenantKeyed(), settings
	ask.TrustsUnknown = o.Models.UnknownModels == models.TrustUnknown
	ask.Directive = model.Directive(o.Models.Directive)
	ask.RefusesSubstitution = !o.Models.Substitution
	ask.HidesFallback = o.Models.HidesFallback
	ask.AssetMemory = o.AssetMemory
	ask.WithholdsRefusals = o.Models.RefusalText == models.NoRefusals
	ask.Defaults.Provider, ask.Defaults.Model, _ = strings.Cut(o.Models.DefaultModel, "/")
	return cfg, nil
}

func (c *core) dispatcherDeps(o *Execution, key Key) (dispatcher.Deps, error) {
	st := c.stores
	deps := dispatcher.Deps{
		Storage: dispatcher.Storage{
			Log:        c.runs(),
			Workflows:  st.Workflows,
			Claims:     st.Claims,
			Quarantine: st.Quarantine,
			Leases:     st.Leases,

			Erasures:     c.runs(),
			EraseRecords: st.EraseRun,
			EraseTenant:  st.EraseTenant,
			Retention:    st.Retention,

			EraseWorkflow: st.EraseWorkflow,
			LogState:      c.logState,
		},
		Queueing: dispatcher.Queueing{Queue: st.Queue, Waiting: st.Waiting, Rates: st.Rates},
		Services: dispatcher.Services{
			Peers:    st.Peers,
			Acceptor: c.clients.Acceptor,
			Redactor: c.clients.Redactor,
			EventLog: c.clients.EventLog,
		},
		Clock:  time.Now,
		Logger: c.log,
	}
	if c.spans != nil {
		deps.Spans = c.spans
	}
	var err error
	if deps.Providers, err = o.Models.Open(st.Seams.Scripts, c.later); err != nil {
		return deps, err
	}
	credentials, err := o.Models.Credentials()
	if err != nil {
		return deps, err
	}
	c.later(func() { _ = credentials.Close() })
	deps.Credentials = credentials
	if deps.Policies, err = o.Models.Policies(); err != nil {
		return deps, exit.With(exit.Usage, err)
	}
	if deps.Archive, err = o.openArchive(); err != nil {
		return deps, err
	}
	var tenants, calls error
	deps.TenantLimits, tenants = o.openTenantLimits(c.log)
	deps.ToolLimits, calls = o.openToolLimits(c.log)
	if err := errors.Join(tenants, calls); err != nil { // a file was changed since Validate
		return deps, exit.With(exit.Usage, err)
	}
	if deps.Tools, err = o.Tools.Runners(c.later); err != nil {
		return deps, err
	}
	secret, err := key.secret()
	if err != nil {
		return deps, err
	}
	if deps.Cleartext, err = cleartext.New(st.Sealed, secret); err != nil {
		return deps, err
	}
	deps.Snapshots, err = snapshot.NewStore(st.Snapshots, secret)
	return deps, err
}

// openArchive opens the archive; nil without one. A bucket that is away does not keep a host from
// starting.
func (o *Execution) openArchive() (archive.Target, error) {
	if o.Archive == "" {
		return nil, nil
	}
	target, err := store.Open(context.Background(), o.Archive)
	if err == nil {
		err = store.Prepare(target)
	}
	if err != nil {
		return nil, exit.Usagef("--archive: %w", err)
	}
	return target, nil
}

// openLimits opens the file that a flag names; nil without one. what names its content in the log.
func openLimits[T any](flag, file, what string, parse func([]byte) (T, error), log *slog.Logger) (*settings.Source[T], error) {
	if file == "" {
		return nil, nil
	}
	limits, err := settings.Open(what, file, parse, log)
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w", flag, file, hostfile.WithoutPath(err))
	}
	return limits, nil
}

// openTenantLimits opens the file of --tenant-limits; nil without one.
func (o *Execution) openTenantLimits(log *slog.Logger) (*settings.Source[*tenantlimit.Limits], error) {
	return openLimits("tenant-limits", o.TenantLimits, "tenant limits", tenantlimit.Parse, log)
}

// openToolLimits opens the file of --tool-limits; nil without one.
func (o *Execution) openToolLimits(log *slog.Logger) (*settings.Source[*tool.Limits], error) {
	parse := func(doc []byte) (*tool.Limits, error) {
		return tool.ParseLimits(doc, &settings.Names{Known: ids(o.Tools.MCPServers)}, &settings.Names{Known: ids(o.Tools.A2AAgents)})
	}
	return openLimits("tool-limits", o.ToolLimits, "tool limits", parse, log)
}

// ids returns the ids of flags of the form ID=TARGET.
func ids(flags []string) []string {
	out := []string{}
	for _, f := range flags {
		id, _, _ := strings.Cut(f, "=")
		out = append(out, id)
	}
	return out
}
