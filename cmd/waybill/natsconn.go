package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/internal/blob/jetblob"
	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/jetkv"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/jetstream"
)

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
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Warn("NATS is back")
			warnOfPayload(nc, log)
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("NATS complains", "error", err) }),
	}
}

// warnOfPayload tells when a server takes less at a time than an envelope can
// cause. It is no reason to end: most envelopes are small.
func warnOfPayload(nc *nats.Conn, log logger) {
	if limit := nc.MaxPayload(); limit < runlog.MaxFrameBytes {
		log.Warn("the NATS server refuses large envelopes: raise its max_payload", "max_payload", limit, "needed", runlog.MaxFrameBytes)
	}
}

// runLog is the run log of a service that runs alone. The service may begin
// before the log's server does.
type runLog struct {
	runlog.Late

	assets   lateBlobs // opened with the log, if keeps says so
	keeps    bool
	connect  func() (*nats.Conn, error)
	replicas int
	synced   bool // the server is ours, and syncs every write
	logger   logger

	mu   sync.Mutex // guards what follows
	conn *nats.Conn
	log  *jetstream.Log
	err  error // why it is not open yet
}

// openRunLog gives the run log: that of the server at --nats as soon as it is
// there, or one of this process's own.
func (a *alone) openRunLog(ctx context.Context, o acceptorOptions) (*runLog, error) {
	r := &runLog{replicas: o.nats.replicas, keeps: o.assets.publicURL != "", logger: a.log}
	if o.nats.url == "" {
		srv, err := a.embedNATS(o)
		if err != nil {
			return nil, err
		}
		r.synced, r.connect = true, func() (*nats.Conn, error) { return srv.Connect("acceptor") }
		a.later(r.close)
		return r, r.open(ctx)
	}
	r.connect = func() (*nats.Conn, error) { return o.nats.dial("acceptor", a.log) }
	a.later(r.close)
	first, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	switch err := r.open(first); {
	case err == nil:
		return r, nil
	case hopeless(err):
		return nil, fmt.Errorf("--nats: %w", err)
	}
	a.group.Start(lifecycle.Part{Name: "run log", Run: r.run})
	return r, nil
}

func (a *alone) embedNATS(o acceptorOptions) (*natsd.Server, error) {
	if err := os.MkdirAll(o.dataDir, 0o700); err != nil {
		return nil, fmt.Errorf("--data-dir %s: %w", o.dataDir, err)
	}
	unlock, err := lockDir(o.dataDir)
	if err != nil {
		return nil, err
	}
	a.later(unlock)
	srv, err := natsd.Start(natsd.Config{Dir: o.logDir(), Sync: true, Hashed: hashedStreams, Log: a.log}, rand.Text())
	if err != nil {
		return nil, err
	}
	a.later(srv.Stop)
	a.group.Start(lifecycle.Part{Name: "run log", Run: srv.Watch})
	return srv, nil
}

// run opens the log as soon as its server is there. What waiting does not mend
// ends the process.
func (r *runLog) run(ctx context.Context) error {
	told := ""
	for {
		err := r.open(ctx)
		switch {
		case err == nil:
			<-ctx.Done()
			return nil
		case ctx.Err() != nil:
			return nil
		case hopeless(err):
			return fmt.Errorf("--nats: %w", err)
		case err.Error() != told:
			told = err.Error()
			r.logger.Warn("the run log does not open yet; it is tried again every second", "error", err)
		}
		if !lifecycle.Wait(ctx, checkEvery) {
			return nil
		}
	}
}

// open connects, if that has not been done, and opens the log.
func (r *runLog) open(ctx context.Context) error {
	conn, err := r.connected()
	if err == nil {
		cfg := jetstream.DefaultConfig()
		cfg.Replicas, cfg.Patience, cfg.ShareSync = r.replicas, logPatience, r.synced
		var log *jetstream.Log
		if log, err = jetstream.Open(ctx, conn, cfg); err == nil {
			err = r.openAssets(ctx, conn)
		}
		if err == nil {
			r.opened(log)
			warnOfPayload(conn, r.logger)
			return nil
		}
		if errors.Is(err, nats.ErrNoResponders) {
			err = fmt.Errorf("no JetStream at this server, or not yet: %w", err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	return err
}

func (r *runLog) openAssets(ctx context.Context, conn *nats.Conn) error {
	if !r.keeps {
		return nil
	}
	store, err := jetblob.Open(ctx, conn, assetBucket(r.replicas))
	if err != nil {
		return err
	}
	r.assets.open(store)
	return nil
}

// seams opens the state of the test seams; the log's server has to be there.
func (r *runLog) seams(ctx context.Context) (kv.Store, error) {
	conn, err := r.connected()
	if err != nil {
		return nil, err
	}
	return jetkv.Open(ctx, conn, seamBucket(r.replicas))
}

func (r *runLog) connected() (*nats.Conn, error) {
	r.mu.Lock()
	conn := r.conn
	r.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	conn, err := r.connect() // may take seconds
	if err != nil {
		return nil, fmt.Errorf("cannot connect: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conn = conn
	return conn, nil
}

func (r *runLog) opened(log *jetstream.Log) {
	r.mu.Lock()
	r.log, r.err = log, nil
	r.mu.Unlock()
	r.Open(log)
}

func (r *runLog) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn != nil {
		_ = r.conn.FlushTimeout(time.Second)
		r.conn.Close()
	}
}

// check says why the log cannot be used; nil when it can.
func (r *runLog) check(ctx context.Context) error {
	r.mu.Lock()
	conn, log, err := r.conn, r.log, r.err
	r.mu.Unlock()
	switch {
	case log == nil:
		return fmt.Errorf("the run log is not open: %w", err)
	case !conn.IsConnected():
		return errors.New("no connection to NATS")
	}
	return log.Check(ctx)
}

// Codes of the server for what no other try changes. That replicas cannot be had
// from a single server comes as an error of its own, not as one of the request.
const (
	errNoPeers          = 10005 // a cluster that is still gathering says so as well
	errNoReplicasHere   = 10074
	errJetStreamOff     = 10076
	errJetStreamAccount = 10039
)

// hopeless reports that waiting does not mend an error: the server is there, and
// lets us not in, or cannot keep the log as it must be kept.
func hopeless(err error) bool {
	if api, ok := errors.AsType[*js.APIError](err); ok {
		switch int(api.ErrorCode) {
		case errNoReplicasHere, errJetStreamOff, errJetStreamAccount:
			return true
		case errNoPeers:
			return false
		}
		return api.Code == http.StatusBadRequest
	}
	for _, hard := range []error{
		nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired,
		nats.ErrSecureConnRequired, nats.ErrSecureConnWanted, nats.ErrNkeysNotSupported, fs.ErrNotExist, fs.ErrPermission,
	} {
		if errors.Is(err, hard) {
			return true
		}
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	// The client hands this one on as the server's text.
	return strings.Contains(strings.ToLower(err.Error()), nats.AUTHORIZATION_ERR)
}
