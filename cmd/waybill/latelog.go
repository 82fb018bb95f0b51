package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"sync"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/jetkv"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/natsd"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/jetstream"
)

// lateLog is the run log of an acceptor, and its assets: it serves before they are open
// what needs neither.
type lateLog struct {
	runlog.Late

	assets lateBlobs
	open   *natsStores

	mu     sync.Mutex // guards what follows
	stores *stores
	err    error // why they are not open yet
}

// openRunLog gives the run log: that of the server at --nats as soon as it is
// there, or one of this process's own.
func (a *alone) openRunLog(ctx context.Context, o acceptorOptions) (*lateLog, error) {
	var more []needs
	if o.assets.publicURL != "" {
		more = append(more, acceptorNeeds)
	}
	r := &lateLog{}
	a.later(r.close)
	if o.nats.url == "" {
		srv, err := a.embedNATS(o)
		if err != nil {
			return nil, err
		}
		cfg := jetstream.DefaultConfig()
		cfg.Patience, cfg.OnDisk = logPatience, srv.OnDisk
		r.open = &natsStores{dial: srv.Connect, cfg: cfg, needs: more, log: a.log}
		s, err := r.open.try(ctx)
		if err != nil {
			return nil, err
		}
		r.opened(s)
		return r, nil
	}
	r.open = o.nats.stores("acceptor", jetstream.DefaultConfig(), a.log, more...)
	first, cancel := context.WithTimeout(ctx, logPatience)
	defer cancel()
	switch s, err := r.open.try(first); {
	case err == nil:
		r.opened(s)
		return r, nil
	case hopeless(err):
		return nil, fmt.Errorf("--nats: %w", err)
	default:
		r.waits(err)
	}
	a.group.Start(lifecycle.Part{Name: "run log", Run: func(ctx context.Context) error {
		s, err := r.open.wait(ctx, r.waits)
		if err != nil {
			return orStopped(ctx, err)
		}
		r.opened(s)
		<-ctx.Done()
		return nil
	}})
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

func (r *lateLog) waits(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *lateLog) opened(s *stores) {
	r.mu.Lock()
	r.stores, r.err = s, nil
	r.mu.Unlock()
	if s.assets != nil {
		r.assets.open(s.assets)
	}
	r.Open(s.log)
}

// seams opens the state of the test seams; the log's server has to be there.
func (a *alone) seams(ctx context.Context, n *natsStores) (kv.Store, error) {
	conn, err := n.dial("seams")
	if err != nil {
		return nil, err
	}
	a.later(conn.Close)
	return jetkv.Open(ctx, conn, seamBucket(n.cfg.Replicas))
}

func (r *lateLog) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stores != nil {
		r.stores.close()
	}
}

// check says why the log cannot be used; nil when it can.
func (r *lateLog) check(ctx context.Context) error {
	r.mu.Lock()
	s, err := r.stores, r.err
	r.mu.Unlock()
	if s == nil {
		return fmt.Errorf("the run log is not open: %w", err)
	}
	return s.connected(ctx)
}
