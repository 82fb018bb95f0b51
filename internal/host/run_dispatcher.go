package host

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"waybill.dev/waybill/internal/host/natsstore"
	"waybill.dev/waybill/internal/host/packs"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
)

// DispatcherOptions are the flags of `waybill serve dispatcher`.
type DispatcherOptions struct {
	ProcessOptions
	Spread Peers
	Host   Options
}

// DispatcherPeers are the services that a dispatcher calls.
var DispatcherPeers = []string{nameRedactor, nameAcceptor, nameEventLog}

// RunDispatcher serves until ctx ends.
func RunDispatcher(ctx context.Context, o DispatcherOptions, log *slog.Logger) error {
	began := time.Now()
	if o.Host.TestSeams {
		o.Host.prompts.Canary = packs.CanaryValue()
	}
	h, err := newPart(o.ProcessOptions, o.Host, log)
	if err != nil {
		return err
	}
	defer h.Close()
	if err := h.readPacks(); err != nil {
		return err
	}
	if err := h.reach(&o.Spread); err != nil {
		return err
	}
	if err := h.openSpread(ctx, &o.Spread, nameDispatcher, natsstore.ForDispatcher); err != nil {
		return orStopped(ctx, err)
	}
	if h.spans, err = h.opts.Tracing.exporter(ctx, "waybill-dispatcher", h.Log, h.later); err != nil {
		return err
	}
	if err := h.buildDispatcher(ctx, nil); err != nil {
		return err
	}
	h.process.registry.MustRegister(h.dispatch.Collectors()...)
	// Definitions are registered through the same handlers as callers use.
	local := rpc.NewLocal(h.Log, nil, nil)
	h.dispatch.Register(local)
	h.Group.Start(lifecycle.Part{Name: "dispatcher calls", Run: local.Serve})
	loader := &WorkflowLoader{Client: dispatcherv1.NewDispatcherClient(local), Log: h.Log}
	loaded := make(chan struct{})
	h.Group.Start(lifecycle.Part{Name: "workflows", Run: func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-h.dispatch.Ready():
		}
		if err := loader.LoadDirs(ctx, h.opts.Workflows); err != nil {
			return err
		}
		close(loaded)
		return loader.Watch(h.opts.Workflows).Run(ctx)
	}})
	return h.process.run(ctx, began, func(ctx context.Context) error {
		select {
		case <-loaded: // those that it was given, too: who finds it ready may run them
		default:
			return errors.New("it reads the workflow definitions")
		}
		return h.stores.Connected(ctx)
	}, h.checkPeers)
}
