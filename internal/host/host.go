// Package host assembles services: a whole host in one process (Host), or one service per process
// (process, and the Run functions). The commands build the options from flags.
package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/host/models"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/natsd"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	redactorv1 "waybill.dev/waybill/proto/gen/go/waybill/redactor/v1"
	"waybill.dev/waybill/protocol/suggest"
	"waybill.dev/waybill/protocol/workflow"
	"waybill.dev/waybill/services/acceptor"
	"waybill.dev/waybill/services/dispatcher"
	"waybill.dev/waybill/services/dispatcher/provider/catalogue"
	"waybill.dev/waybill/services/eventlog"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/session"
	"waybill.dev/waybill/services/redactor"
)

// Options are the settings of a whole host.
type Options struct {
	// DataDir holds all state.
	DataDir string
	// IndexPayloads makes lists of runs searchable by the words of their contents.
	IndexPayloads bool
	Log           EmbeddedLog
	Secrets       Secrets
	AssetKeys     []string
	Public        Public
	Envelopes     Envelopes
	Execution     Execution
	Telemetry     Telemetry
	// DemoRuns registers the demo workflows.
	DemoRuns bool
}

// DefaultOptions are the settings without flags.
func DefaultOptions() Options {
	return Options{
		Log: EmbeddedLog{Durability: DurabilitySync, HotWindow: workflow.Unlimited}, Secrets: DefaultSecrets(),
		Public: DefaultPublic(), Envelopes: DefaultEnvelopes(), Execution: DefaultExecution(), Telemetry: Telemetry{DefaultRatio: devRatio},
	}
}

// Validate returns all errors in the settings, joined. Each has the flag, the value and the remedy.
// A host without an API key gets DevKey.
func (o *Options) Validate() error {
	o.share()
	return errors.Join(o.checkValues(), validateTelemetry(o.Telemetry, os.Environ()), o.Envelopes.validateKinds(), o.Secrets.Validate(),
		o.Public.Validate(), o.Execution.Validate())
}

// Check returns all errors in the values, joined. It reads neither files nor variables.
func (o *Options) Check() error {
	o.share()
	return errors.Join(o.checkValues(), validateTelemetry(o.Telemetry, nil), o.Public.Check(), o.Execution.Check())
}

// share sets what several services have in common.
func (o *Options) share() {
	if len(o.Public.APIKeys) == 0 {
		o.Public.APIKeys = []string{DevKey + "=default:*"}
	}
	o.Envelopes.TestSeams, o.Execution.TestSeams = o.Public.TestSeams, o.Public.TestSeams
	o.Execution.AIEnvelope = o.Envelopes.AIEnvelope
}

func (o *Options) checkValues() error {
	errs := []error{o.Log.validate(), o.Envelopes.Check(), validateAssetKeys(o.AssetKeys)}
	specs, err := apiKeys(o.Public.APIKeys)
	if err != nil { // Public reports it
		return errors.Join(errs...)
	}
	for _, name := range o.Execution.Models.FallbackHidden {
		if name != models.AnyTenant && !slices.ContainsFunc(specs, func(s auth.Spec) bool { return s.Tenant == name }) {
			errs = append(errs, fmt.Errorf("--hide-fallback %q: no --api-key is of this tenant%s", name, listTenants(name, specs)))
		}
	}
	return errors.Join(errs...)
}

// listTenants suggests a tenant, or lists them.
func listTenants(name string, specs []auth.Spec) string {
	var known []string
	for _, s := range specs {
		if !slices.Contains(known, s.Tenant) {
			known = append(known, s.Tenant)
		}
	}
	if near := suggest.Names(name, known, 1); len(near) > 0 {
		return "; did you mean " + near[0] + "?"
	}
	return "; there are " + strings.Join(known, ", ") + ", and * for all"
}

// Host is the five services in one process, each behind its own gRPC server, wired as separate
// processes are.
type Host struct {
	core

	opts       Options
	began      time.Time
	key        Key
	nats       *natsd.Server
	redactor   *redactor.Service
	acceptor   *acceptor.Service
	catalogue  *catalogue.Catalogue
	events     *eventlog.Service
	dispatcher *dispatcher.Service
	public     *publicServer
	// loaded is closed when the workflows of files are registered.
	loaded chan struct{}
}

// New locks the data directory and builds the services; nothing is served before Start. After an
// error, everything that was opened is closed.
func New(ctx context.Context, o Options, log *slog.Logger) (*Host, error) {
	h := &Host{core: core{log: log}, opts: o, began: time.Now(), key: Key{DataDir: o.DataDir, log: log}, loaded: make(chan struct{})}
	h.opts.share()
	h.public = &publicServer{opts: &h.opts.Public}
	limitMemory()
	if err := h.build(ctx); err != nil {
		err = errors.Join(err, h.group.Stop())
		h.close()
		return nil, err
	}
	return h, nil
}

// Close releases the host's resources.
func (h *Host) Close() { h.close() }

func (h *Host) build(ctx context.Context) error {
	if err := os.MkdirAll(h.opts.DataDir, 0o700); err != nil {
		return fmt.Errorf("--data-dir %s: %w", h.opts.DataDir, err)
	}
	unlock, err := hostfile.LockDir(h.opts.DataDir)
	if err != nil {
		return err
	}
	h.later(unlock)
	known := Credentials{
		APIKeys: h.opts.Public.APIKeys, AssetKeys: h.opts.AssetKeys, InterruptKeys: h.opts.Public.InterruptKeys,
		Models: &h.opts.Execution.Models, Tools: &h.opts.Execution.Tools, canary: canary(h.opts.Public.TestSeams),
	}
	if _, err := parseAPIKeys(known.APIKeys); err != nil {
		return err
	}
	x, err := loadExecutables(&h.opts.Execution, known.canary, h.log, h.opts.demoPacks()...)
	if err != nil {
		return err
	}
	out, err := openOutputs(ctx, "waybill", h.opts.Telemetry, h.opts.Secrets, known, h.log)
	if err != nil {
		return err
	}
	h.redactor = out.redactor
	h.use(out)
	if err := h.public.listen(h.later); err != nil {
		return err
	}
	if err := h.openLog(ctx); err != nil {
		return err
	}
	return h.buildServices(ctx, x)
}

// buildServices creates the services in the order of their dependencies.
func (h *Host) buildServices(ctx context.Context, x executables) error {
	h.clients.Redactor = redactorv1.NewRedactorClient(h.serveLocally("redactor", h.redactor.Register))
	vault, err := h.newVault(h.key, h.opts.AssetKeys, h.public.baseURL)
	if err != nil {
		return err
	}
	if h.acceptor, err = h.newAcceptor(&h.opts.Envelopes, x.packs, vault); err != nil {
		return err
	}
	h.catalogue = x.catalogue
	h.clients.Acceptor = acceptorv1.NewAcceptorClient(h.serveLocally("acceptor", h.acceptor.Register))
	if h.events, err = h.newEventLog(ctx, &ReadModel{DataDir: h.opts.DataDir, IndexPayloads: h.opts.IndexPayloads}); err != nil {
		return err
	}
	h.clients.EventLog = eventlogv1.NewEventLogClient(h.serveLocally("event log", h.events.Register))
	if h.dispatcher, err = h.newDispatcher(&h.opts.Execution, h.key, x, true); err != nil {
		return err
	}
	h.clients.Dispatcher = dispatcherv1.NewDispatcherClient(h.serveLocally("dispatcher", h.dispatcher.Register))
	return h.newGateway(ctx, h.public, h.key, session.Dev, h.reason, h.warnings)
}

// Start serves, registers the workflows of files, and returns once the host can execute runs. The
// host has stopped if it returns an error.
func (h *Host) Start(ctx context.Context) error {
	loaded := h.dispatcher.Loading()
	h.public.gateway.SetServing(false)
	h.public.start(&h.core, slices.Concat(h.dispatcher.Collectors(), h.events.Collectors(), h.coldCollectors(), []prometheus.Collector{lostRecords(h.lost), newDamagedRecords(h.nats)})...)
	h.group.Start(lifecycle.Part{Name: "losses of the log", Run: h.watchLosses})
	if err := h.untilReady(ctx); err != nil {
		return h.Stop(err)
	}
	if err := h.serveBackups(); err != nil {
		return h.Stop(err)
	}
	h.startSealing()
	dirs := h.opts.Execution.Workflows
	loader := &workflowLoader{client: h.clients.Dispatcher, log: h.log, dirs: dirs, notes: h.dispatcher.SetFileNotes, alone: true}
	watch := &fileWatcher{
		log: h.log, loaded: h.loaded, workflows: dirs, load: loader.reload, removeGone: loader.removeGone, folders: h.opts.folders(), reload: h.reload,
	}
	watch.open()
	h.group.Start(lifecycle.Part{Name: "file watcher", Run: watch.run})
	if err := errors.Join(loader.loadExamples(ctx), h.opts.loadDemo(ctx, loader), loader.loadDirs(ctx)); err != nil {
		return h.Stop(err)
	}
	loaded()
	close(h.loaded)
	h.public.gateway.SetServing(true)
	return nil
}

// Wait serves until ctx ends or a part fails.
func (h *Host) Wait(ctx context.Context) error { return h.group.Wait(ctx) }

// Stop stops serving because of an error, and returns it.
func (h *Host) Stop(why error) error { return errors.Join(why, h.group.Stop()) }

// Log is the host's log, which is redacted.
func (h *Host) Log() *slog.Logger { return h.log }

// Addresses returns the addresses of the host's APIs.
func (h *Host) Addresses() Addresses {
	a := h.public.addresses(time.Since(h.began))
	if h.nats.Addr() != "" {
		a.NATS = "nats://" + h.nats.Addr()
	}
	return a
}

// ConsoleLink returns the URL of the console, with a code that signs in once if only this machine can
// reach it; empty without a console.
func (h *Host) ConsoleLink() string { return h.public.consoleLink(h.Addresses()) }

// reason returns why the host cannot serve, as shown to callers; nil if it can.
func (h *Host) reason() error {
	if err := h.notReady(); err != nil {
		return probe.Public(err)
	}
	select {
	case <-h.loaded:
		return nil
	default:
		return errors.New("the host loads its workflows")
	}
}

// notReady returns why the host cannot carry out runs; nil if it can.
func (h *Host) notReady() error {
	for _, step := range []struct {
		done <-chan struct{}
		what string
	}{
		{h.dispatcher.Ready(), "the dispatcher reads its workflow definitions"},
		{h.dispatcher.Executes(), "the dispatcher starts"},
	} {
		select {
		case <-step.done:
		default:
			return probe.Plain(step.what)
		}
	}
	if err := h.nats.Ready(); err != nil {
		return probe.WithPublic("the run log cannot be written; the host's log has the reason", err)
	}
	if err := h.events.Ready(); err != nil {
		return probe.WithPublic("the read model is behind or cannot be written; the host's log has the reason", err)
	}
	return nil
}

// readyPoll is how often readiness is checked while the host starts.
const readyPoll = 2 * time.Millisecond

// untilReady waits until the host can serve.
func (h *Host) untilReady(ctx context.Context) error {
	t := time.NewTicker(readyPoll)
	defer t.Stop()
	for {
		err := h.notReady()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stopped while starting: %w", err)
		case <-t.C:
		}
	}
}

// canary is the value of the secret that the protocol's tests plant; empty without test seams.
func canary(testSeams bool) string {
	if testSeams {
		return packs.CanaryValue()
	}
	return ""
}
