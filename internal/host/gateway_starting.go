package host

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/protocol/fault"
)

// answerProbes serves probes at the public address before the API is ready, with the reason of the
// wait. stop releases the address.
func (p *publicServer) answerProbes(ready func() error) (stop func()) {
	mux := http.NewServeMux()
	probe.Handle(mux, ready)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		probe.WriteFault(w, fault.New(fault.ServiceUnavailable, "the host starts; try again").After(probe.CheckEvery))
	})
	srv := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second}
	own, ok := p.httpAddr.(*net.TCPListener)
	if !ok {
		return func() {}
	}
	var lis net.Listener = borrowed{own}
	if p.certs != nil {
		lis = tls.NewListener(lis, p.certs.Config())
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = srv.Serve(lis) // it ends with the borrowed listener
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), probe.CheckEvery)
		defer cancel()
		if srv.Shutdown(ctx) != nil {
			_ = srv.Close()
		}
		<-ended
		_ = own.SetDeadline(time.Time{})
	}
}

// borrowed is a listener that its server cannot close.
type borrowed struct{ *net.TCPListener }

// Close only ends Accept.
func (b borrowed) Close() error { return b.SetDeadline(time.Unix(1, 0)) }
