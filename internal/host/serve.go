package host

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/internal/lifecycle"
)

// Start opens the doors. They are started last, so that they are closed first.
func (h *Host) Start() {
	h.Group.Start(lifecycle.Part{
		Name: "public grpc",
		Run: func(ctx context.Context) error {
			err := h.public.Serve(h.grpcAddr)
			if ctx.Err() != nil {
				return nil
			}
			return err
		},
		Stop: func(ctx context.Context) {
			stopped := make(chan struct{})
			go func() { h.public.GracefulStop(); close(stopped) }()
			select {
			case <-stopped:
			case <-ctx.Done():
				h.public.Stop()
				<-stopped
			}
		},
	})
	h.Group.Start(lifecycle.Part{
		Name: "http",
		Run: func(context.Context) error {
			lis := h.httpAddr
			if h.certs != nil {
				lis = tls.NewListener(lis, h.certs.Config())
			}
			if err := h.http.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		},
		Stop: func(ctx context.Context) {
			h.gateway.Drain() // streams end, their readers resume
			if err := h.http.Shutdown(ctx); err != nil {
				_ = h.http.Close() // requests that did not end in time are cut
			}
		},
	})
	if h.metrics != nil {
		h.startMetrics()
	}
}

func (h *Host) startMetrics() {
	reg := probe.NewRegistry()
	if h.dispatch != nil {
		reg.MustRegister(h.dispatch.Collectors()...)
	} else { // a gateway in a process of its own
		reg.MustRegister(h.lacking.Gauge())
	}
	if h.events != nil {
		reg.MustRegister(h.events.Collectors()...)
	}
	reg.MustRegister(h.gateway.Collectors()...)
	if h.webhooks != nil {
		reg.MustRegister(h.webhooks.Collectors()...)
	}
	h.Group.Start(probe.ServeOperator(h.metrics, probe.OperatorMux(reg)))
}

// ready says why the host cannot serve; nil when it can.
func (h *Host) ready() error {
	if h.dispatch == nil {
		return probe.Public(h.state.Reason())
	}
	select {
	case <-h.dispatch.Ready():
	default:
		return errors.New("the dispatcher reads its workflow definitions")
	}
	if err := h.NATS.Ready(); err != nil {
		return err
	}
	return h.events.Ready()
}

// readyPoll is how often readiness is looked at while the host starts.
const readyPoll = 2 * time.Millisecond

// UntilReady waits until the host can serve.
func (h *Host) UntilReady(ctx context.Context) error {
	t := time.NewTicker(readyPoll)
	defer t.Stop()
	for {
		err := h.ready()
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

// ReadyInfo says where the host can be reached.
func (h *Host) ReadyInfo(took time.Duration) ReadyInfo {
	r := ReadyInfo{
		HTTP: h.localURL(), GRPC: reachable(h.grpcAddr.Addr()), PID: os.Getpid(), ReadyMs: took.Milliseconds(),
	}
	if h.NATS != nil && h.NATS.Addr() != "" {
		r.NATS = "nats://" + h.NATS.Addr()
	}
	r.Metrics = probe.MetricsURL(h.metrics)
	if h.opts.Console.console {
		r.Console = r.HTTP + consolePath
	}
	return r
}
