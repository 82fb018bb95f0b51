package host

import (
	"context"
	"errors"
	"log/slog"

	"waybill.dev/waybill/internal/host/natsstore"
	"waybill.dev/waybill/internal/host/peer"
	"waybill.dev/waybill/internal/lifecycle"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
)

// DispatcherProcess are the settings of a separate dispatcher process.
type DispatcherProcess struct {
	Process
	NATS      natsstore.Address
	Peers     peer.Options
	Key       Key
	Execution Execution
	Cold      ColdStore
	// HotWindow is how long a run stays in the log after its end, as workflow.ParseRetention reads it.
	// Then it is moved to the cold store.
	HotWindow string
	// GiveUpSealed gives sealed runs up that the cold store lacks, after a loss of it.
	GiveUpSealed bool
}

// DispatcherPeers returns the services that a dispatcher calls.
func DispatcherPeers() []string { return []string{peer.Redactor, peer.Acceptor, peer.EventLog} }

// Validate returns all errors, joined.
func (o *DispatcherProcess) Validate() error {
	return errors.Join(
		o.Process.Validate(), validateSharedNATS(&o.NATS), o.Peers.Validate(DispatcherPeers()...), o.Execution.Validate(), o.Key.Validate(), o.Cold.Validate(), o.checkSealing(),
	)
}

// Check returns all errors in the values, joined. It reads neither files nor variables.
func (o *DispatcherProcess) Check() error {
	return errors.Join(o.Process.Check(), o.NATS.Check(), o.Peers.Validate(DispatcherPeers()...), o.Execution.Check(), o.Cold.Check(), o.checkSealing())
}

// checkSealing returns all errors of the settings about the move of runs to the cold store.
func (o *DispatcherProcess) checkSealing() error {
	window, err := hotWindow(o.HotWindow)
	switch {
	case err != nil:
		return err
	case o.Cold.URLFile != "":
		return nil
	case window > 0:
		return errors.New("--hot-window: the services of a host share a cold store in PostgreSQL; give --cold-postgres-url-file to all of them")
	case o.GiveUpSealed:
		return errors.New("--give-up-lost-runs: there is no cold store; give --cold-postgres-url-file")
	}
	return nil
}

// RunDispatcher serves until ctx ends.
func RunDispatcher(ctx context.Context, o DispatcherProcess, log *slog.Logger) error {
	known := Credentials{Models: &o.Execution.Models, Tools: &o.Execution.Tools, canary: canary(o.Execution.TestSeams)}
	out, err := openOutputs(ctx, "waybill-dispatcher", o.Telemetry, o.Secrets, known, log)
	if err != nil {
		return err
	}
	p, err := newProcess(&o.Process, out)
	if err != nil {
		return err
	}
	defer p.close()
	p.serveOperator()
	x, err := loadExecutables(&o.Execution, known.canary, p.log)
	if err != nil {
		return err
	}
	clients, peers, err := peer.Connect(&o.Peers, p.log, p.later)
	if err != nil {
		return err
	}
	p.clients = clients
	needs := withSeams(o.Execution.TestSeams, natsstore.ForDispatcher)
	if err := p.openStores(ctx, &o.NATS, peer.Dispatcher, o.Execution.logConfig(false), p.serving.Set, needs...); err != nil {
		return ignoreStop(ctx, err)
	}
	if err := p.sealShared(ctx, &o); err != nil {
		return ignoreStop(ctx, err)
	}
	s, err := p.newDispatcher(&o.Execution, o.Key, x, false)
	if err != nil {
		return err
	}
	s.Register(p.server)
	p.registry.MustRegister(s.Collectors()...)
	p.sealInTurn(s)
	// Definitions are registered through the same handlers as callers use.
	local := dispatcherv1.NewDispatcherClient(p.serveLocally("dispatcher", s.Register))
	loader := &workflowLoader{client: local, log: p.log, dirs: o.Execution.Workflows, notes: s.SetFileNotes}
	loaded, registered := make(chan struct{}), s.Loading()
	watch := &fileWatcher{log: p.log, loaded: loaded, workflows: o.Execution.Workflows, load: loader.reload, removeGone: loader.removeGone}
	p.group.Start(lifecycle.Part{Name: "workflows", Run: func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-s.Ready():
		}
		watch.open()
		if err := loader.loadDirs(ctx); err != nil {
			return err
		}
		registered()
		close(loaded)
		return watch.run(ctx)
	}})
	return p.serve(ctx, func(ctx context.Context) error {
		select {
		case <-loaded: // a ready dispatcher runs the definitions of its files
		default:
			return errors.New("loading the workflow definitions")
		}
		select {
		case <-s.Executes():
		default:
			return errors.New("the dispatcher is starting")
		}
		return p.stores.Connected(ctx)
	}, peers.Check)
}
