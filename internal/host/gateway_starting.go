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
	// A ServeMux would redirect some paths, with an answer of its own.
	srv := &http.Server{Handler: startingHandler(ready), ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second}
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

// startingHandler answers probes. It rejects all other requests until the host has started.
func startingHandler(ready func() error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !probe.Answer(w, r, ready) {
			probe.WriteFault(w, fault.New(fault.ServiceUnavailable, "the host starts; try again").After(probe.CheckEvery))
		}
	})
}

// borrowed is a listener that its server cannot close.
type borrowed struct{ *net.TCPListener }

// Close only ends Accept.
func (b borrowed) Close() error { return b.SetDeadline(time.Unix(1, 0)) }
