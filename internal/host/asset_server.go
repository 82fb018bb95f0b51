package host

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/rpc"
	acceptorv1 "waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor"
	"waybill.dev/waybill/services/gateway/admission"
	"waybill.dev/waybill/services/gateway/rest"
)

// listenAssets listens on the address of assets; nil if they are not served.
func (p *process) listenAssets(addr string) (net.Listener, error) {
	if addr == "" {
		return nil, nil
	}
	lis, err := p.listen("assets-addr", addr)
	if err != nil {
		return nil, err
	}
	p.assetsURL = "http://" + lis.Addr().String()
	if p.certs != nil {
		p.assetsURL = "https://" + lis.Addr().String()
		lis = tls.NewListener(lis, p.certs.Config())
	}
	return lis, nil
}

// serveAssets serves the assets of an acceptor, with the handler and the limits of a whole host.
func (p *process) serveAssets(s *acceptor.Service, lis net.Listener, o *AcceptorProcess) {
	if lis == nil {
		return
	}
	local := acceptorv1.NewAcceptorClient(p.serveLocally("asset", s.Register))
	srv := &http.Server{
		Handler:           o.Assets.Callers.Patience.Handler(assetHandler(&rest.Assets{Acceptor: local}, o.assetGate(), p.log)),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
	p.group.Start(lifecycle.Part{
		Name: "assets",
		Run: func(context.Context) error {
			if err := srv.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
				return err
			}
			return nil
		},
		Stop: func(ctx context.Context) {
			if err := srv.Shutdown(ctx); err != nil {
				_ = srv.Close() // requests that did not end in time are cut
			}
		},
	})
}

// assetGate admits the readers of assets. They have no API keys: their tokens are the credentials.
func (o *AcceptorProcess) assetGate() *admission.Gate {
	cfg := o.Assets.Admission
	cfg.Bytes = o.Assets.Callers.pool(int64(o.Envelopes.MaxMediaBytes), false)
	return admission.NewGate(cfg, time.Now, admission.Tenants{Of: func(string) (tenant, keyID string) { return "", "" }})
}

// assetHandler serves the assets of tokens; all other paths are not found. A path holds a
// credential, so it is never logged.
func assetHandler(assets *rest.Assets, gate *admission.Gate, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := strings.CutPrefix(r.URL.Path, rest.AssetsPrefix)
		err := error(fault.New(fault.NotFound, "nothing is at this address"))
		if ok {
			err = assets.ServeAdmitted(gate, w, r, token)
		}
		if err == nil {
			return
		}
		e, isFault := fault.As(err)
		if !isFault {
			var id string
			e, id = rpc.Internal(err)
			if r.Context().Err() == nil {
				log.Error("an asset could not be served", "correlation_id", id, "error", err)
			}
		}
		probe.WriteFault(w, e)
	})
}
