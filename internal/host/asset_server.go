package host

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"waybill.dev/waybill/internal/host/probe"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/rpc"
	"waybill.dev/waybill/proto/gen/go/waybill/acceptor/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/acceptor"
	"waybill.dev/waybill/services/gateway/asset"
	"waybill.dev/waybill/services/gateway/rest"
)

// listenAssets takes the address of assets.
func (a *process) listenAssets(addr string) error {
	if addr == "" {
		return nil
	}
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("--assets-addr %s: %w; give another address, or port 0 for a free one", addr, err)
	}
	a.later(func() { _ = lis.Close() })
	a.http = "http://" + lis.Addr().String()
	if a.certs != nil {
		a.http = "https://" + lis.Addr().String()
		lis = tls.NewListener(lis, a.certs.Config())
	}
	a.assets = lis
	return nil
}

// serveAssets serves the assets of an acceptor as a whole host does, and nothing
// else.
func (a *process) serveAssets(s *acceptor.Service) {
	if a.assets == nil {
		return
	}
	local := rpc.NewLocal(a.log, nil, nil)
	s.Register(local)
	a.group.Start(lifecycle.Part{Name: "asset calls", Run: local.Serve})
	srv := &http.Server{
		Handler:           assetHandler(&asset.Handler{Acceptor: acceptorv1.NewAcceptorClient(local)}, a.log),
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	a.group.Start(lifecycle.Part{
		Name: "assets",
		Run: func(context.Context) error {
			if err := srv.Serve(a.assets); !errors.Is(err, http.ErrServerClosed) {
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

// assetHandler answers for tokens; everything else is not found. The path holds a
// credential, so that it is logged nowhere.
func assetHandler(assets rest.Assets, log *slog.Logger) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := strings.CutPrefix(r.URL.Path, rest.AssetsPrefix)
		err := error(fault.New(fault.NotFound, "nothing is at this address"))
		if ok {
			err = assets.Serve(w, r, token)
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
