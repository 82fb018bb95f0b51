package host

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync"

	"waybill.dev/waybill/internal/host/hostfile"
	"waybill.dev/waybill/internal/host/natsstore"
	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/jetkv"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/jetstream"
)

// lazyLog is the run log of an acceptor, and its assets: it serves before they are open
// what needs neither.
type lazyLog struct {
	runlog.Late

	assets lazyBlobs
	open   *natsstore.Opener

	mu     sync.Mutex // guards what follows
	stores *natsstore.Stores
	err    error // why they are not open yet
}

// openRunLog gives the run log: that of the server at --nats as soon as it is
// there, or one of this process's own.
func (a *process) openRunLog(ctx context.Context, o AcceptorOptions) (*lazyLog, error) {
	var more []natsstore.Needs
	if o.Assets.PublicURL != "" {
		more = append(more, natsstore.ForAcceptor)
	}
	r := &lazyLog{}
	a.later(r.close)
	if o.NATS.URL == "" {
		srv, err := a.embedNATS(o)
		if err != nil {
			return nil, err
		}
		cfg := jetstream.DefaultConfig()
		cfg.Patience, cfg.OnDisk = natsstore.Patience, srv.OnDisk
		r.open = &natsstore.Opener{Dial: srv.Connect, Config: cfg, Needs: more, Log: a.log}
		s, err := r.open.Try(ctx)
		if err != nil {
			return nil, err
		}
		r.opened(s)
		return r, nil
	}
	r.open = o.NATS.Opener("acceptor", jetstream.DefaultConfig(), a.log, more...)
	first, cancel := context.WithTimeout(ctx, natsstore.Patience)
	defer cancel()
	switch s, err := r.open.Try(first); {
	case err == nil:
		r.opened(s)
		return r, nil
	case natsstore.Hopeless(err):
		return nil, fmt.Errorf("--nats: %w", err)
	default:
		r.waits(err)
	}
	a.group.Start(lifecycle.Part{Name: "run log", Run: func(ctx context.Context) error {
		s, err := r.open.Wait(ctx, r.waits)
		if err != nil {
			return orStopped(ctx, err)
		}
		r.opened(s)
		<-ctx.Done()
		return nil
	}})
	return r, nil
}

func (a *process) embedNATS(o AcceptorOptions) (*natsd.Server, error) {
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("--data-dir %s: %w", o.DataDir, err)
	}
	unlock, err := hostfile.LockDir(o.DataDir)
	if err != nil {
		return nil, err
	}
	a.later(unlock)
	srv, err := natsd.Start(natsd.Config{Dir: o.logDir(), Sync: true, Hashed: natsstore.HashedStreams, Log: a.log}, rand.Text())
	if err != nil {
		return nil, err
	}
	a.later(srv.Stop)
	a.group.Start(lifecycle.Part{Name: "run log", Run: srv.Watch})
	return srv, nil
}

func (r *lazyLog) waits(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *lazyLog) opened(s *natsstore.Stores) {
	r.mu.Lock()
	r.stores, r.err = s, nil
	r.mu.Unlock()
	if s.Assets != nil {
		r.assets.open(s.Assets)
	}
	r.Open(s.Log)
}

// seams opens the state of the test seams; the log's server has to be there.
func (a *process) seams(ctx context.Context, n *natsstore.Opener) (kv.Store, error) {
	conn, err := n.Dial("seams")
	if err != nil {
		return nil, err
	}
	a.later(conn.Close)
	return jetkv.Open(ctx, conn, natsstore.SeamBucket(n.Config.Replicas))
}

func (r *lazyLog) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stores != nil {
		r.stores.Close()
	}
}

// check says why the log cannot be used; nil when it can.
func (r *lazyLog) check(ctx context.Context) error {
	r.mu.Lock()
	s, err := r.stores, r.err
	r.mu.Unlock()
	if s == nil {
		return fmt.Errorf("the run log is not open: %w", err)
	}
	return s.Connected(ctx)
}
