package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/runlog/jetstream"
)

// runLog is the run log of a service that runs alone.
type runLog struct {
	log  *jetstream.Log
	conn *nats.Conn
}

func (r runLog) check(ctx context.Context) error {
	if !r.conn.IsConnected() {
		return errors.New("no connection to NATS")
	}
	return r.log.Check(ctx)
}

// logPatience is how long a call waits for a log that does not answer: longer
// than a change of leader in a cluster takes, far shorter than callers wait.
const logPatience = 2 * time.Second

// A server that has fallen silent is given up after so many pings.
const (
	pingEvery = 2 * time.Second
	pingsOut  = 2
)

// natsOptions are those of a connection that outlives its server: it never gives
// up, it notices soon, and it keeps nothing back for later, so that callers learn
// at once that the log is away.
func natsOptions(log logger) []nats.Option {
	return []nats.Option{
		nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectBufSize(-1), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsOut),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // nil: closed on purpose
				log.Warn("NATS has gone", "error", err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { log.Warn("NATS is back") }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("NATS complains", "error", err) }),
	}
}

// openRunLog connects to the run log, or starts one of its own.
func (a *alone) openRunLog(ctx context.Context, o acceptorOptions) (runLog, error) {
	conn, err := a.connectNATS(o)
	if err != nil {
		return runLog{}, err
	}
	a.later(func() {
		_ = conn.FlushTimeout(time.Second)
		conn.Close()
	})
	cfg := jetstream.DefaultConfig()
	cfg.Replicas, cfg.Patience = o.replicas, logPatience
	log, err := jetstream.Open(ctx, conn, cfg)
	return runLog{log: log, conn: conn}, err
}

func (a *alone) connectNATS(o acceptorOptions) (*nats.Conn, error) {
	if o.natsURL == "" {
		if err := os.MkdirAll(o.dataDir, 0o700); err != nil {
			return nil, fmt.Errorf("--data-dir %s: %w", o.dataDir, err)
		}
		unlock, err := lockDir(o.dataDir)
		if err != nil {
			return nil, err
		}
		a.later(unlock)
		srv, err := natsd.Start(natsd.Config{Dir: o.logDir(), Sync: true, Log: a.log}, rand.Text())
		if err != nil {
			return nil, err
		}
		a.later(srv.Stop)
		a.group.Start(lifecycle.Part{Name: "run log", Run: srv.Watch})
		return srv.Connect("acceptor")
	}
	opts := append(natsOptions(a.log), nats.Name("waybill acceptor"))
	if o.natsCreds != "" {
		opts = append(opts, nats.UserCredentials(o.natsCreds))
	}
	conn, err := nats.Connect(o.natsURL, opts...)
	if err != nil {
		return nil, fmt.Errorf("--nats: cannot connect: %w", err) // the URL may hold a password
	}
	return conn, nil
}
