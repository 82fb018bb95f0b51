package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
)

// start opens the doors. They are started last, so that they are closed first.
func (h *host) start() {
	h.group.Start(lifecycle.Part{
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
	h.group.Start(lifecycle.Part{
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

func (h *host) startMetrics() {
	reg := newRegistry()
	if h.dispatch != nil {
		reg.MustRegister(h.dispatch.Collectors()...)
	} else { // a gateway in a process of its own
		reg.MustRegister(h.lacking.gauge())
	}
	if h.events != nil {
		reg.MustRegister(h.events.Collectors()...)
	}
	reg.MustRegister(h.gateway.Collectors()...)
	if h.webhooks != nil {
		reg.MustRegister(h.webhooks.Collectors()...)
	}
	h.group.Start(metricsPart(h.metrics, operatorMux(reg)))
}

// ready says why the host cannot serve; nil when it can.
func (h *host) ready() error {
	if h.dispatch == nil {
		return toAnybody(h.state.reason())
	}
	select {
	case <-h.dispatch.Ready():
	default:
		return errors.New("the dispatcher reads its workflow definitions")
	}
	if err := h.nats.Ready(); err != nil {
		return err
	}
	return h.events.Ready()
}

// readyPoll is how often readiness is looked at while the host starts.
const readyPoll = 2 * time.Millisecond

// untilReady waits until the host can serve.
func (h *host) untilReady(ctx context.Context) error {
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

// readyInfo says where the host can be reached.
func (h *host) readyInfo(took time.Duration) readyInfo {
	r := readyInfo{
		HTTP: h.localURL(), GRPC: reachable(h.grpcAddr.Addr()), PID: os.Getpid(), ReadyMs: took.Milliseconds(),
	}
	if h.nats != nil && h.nats.Addr() != "" {
		r.NATS = "nats://" + h.nats.Addr()
	}
	r.Metrics = metricsURL(h.metrics)
	if h.opts.browser.console {
		r.Console = r.HTTP + consolePath
	}
	return r
}
