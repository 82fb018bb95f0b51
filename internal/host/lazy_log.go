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
	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/internal/runlog/cold/postgres"
	"waybill.dev/waybill/internal/runlog/jetstream"
)

// lazyLog is the run log of an acceptor and its store of assets. Both may be opened while the
// acceptor already serves.
type lazyLog struct {
	runlog.Late

	assets lazyBlobs
	opener *natsstore.Opener
	// cold returns a log that also reads sealed runs.
	cold func(*jetstream.Log) runlog.Log

	mu     sync.Mutex // guards the fields below
	stores *natsstore.Stores
	err    error // why the stores are not open yet
}

// openRunLog opens the run log: that of the NATS servers as soon as they answer, or an embedded
// one. Sealed runs are read from store, nil without one.
func (p *process) openRunLog(ctx context.Context, o *AcceptorProcess, store *postgres.Store) (*lazyLog, error) {
	var more []natsstore.Needs
	if o.Assets.PublicURL != "" {
		more = append(more, natsstore.ForAcceptor)
	}
	r := &lazyLog{cold: func(log *jetstream.Log) runlog.Log {
		if store == nil {
			return log
		}
		return cold.NewLog(log, store, p.eventLogsPast, p.tiers.faults)
	}}
	p.later(r.close)
	if o.NATS.URL == "" {
		srv, err := p.embedNATS(ctx, o)
		if err != nil {
			return nil, err
		}
		cfg := jetstream.DefaultConfig()
		cfg.Patience, cfg.OnDisk = natsstore.Patience, srv.OnDisk
		r.opener = &natsstore.Opener{Dial: srv.Connect, Config: cfg, Needs: more, Log: p.log}
		s, err := r.opener.Try(ctx)
		if err != nil {
			return nil, err
		}
		r.setStores(s)
		return r, nil
	}
	r.opener = o.NATS.Opener("acceptor", jetstream.DefaultConfig(), p.log, more...)
	first, cancel := context.WithTimeout(ctx, natsstore.Patience)
	defer cancel()
	switch s, err := r.opener.Try(first); {
	case err == nil:
		r.setStores(s)
		return r, nil
	case natsstore.Hopeless(err):
		return nil, fmt.Errorf("--nats: %w", err)
	default:
		r.setReason(err)
	}
	p.group.Start(lifecycle.Part{Name: "run log", Run: func(ctx context.Context) error {
		s, err := r.opener.Wait(ctx, r.setReason)
		if err != nil {
			return ignoreStop(ctx, err)
		}
		r.setStores(s)
		<-ctx.Done()
		return nil
	}})
	return r, nil
}

func (p *process) embedNATS(ctx context.Context, o *AcceptorProcess) (*natsd.Server, error) {
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("--data-dir %s: %w", o.DataDir, err)
	}
	unlock, err := hostfile.LockDir(o.DataDir)
	if err != nil {
		return nil, err
	}
	p.later(unlock)
	srv, err := natsd.Start(ctx, natsd.Config{
		Dir:      natsDir(o.DataDir),
		Sync:     true,
		Layout:   natsstore.Layout{},
		Recovery: o.Recovery.limits(),
		Log:      p.log,
	}, rand.Text())
	if err != nil {
		return nil, err
	}
	p.later(srv.Stop)
	p.registry.MustRegister(newDamagedRecords(srv))
	p.group.Start(lifecycle.Part{Name: "run log", Run: srv.Watch})
	return srv, nil
}

func (r *lazyLog) setReason(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *lazyLog) setStores(s *natsstore.Stores) {
	r.mu.Lock()
	r.stores, r.err = s, nil
	r.mu.Unlock()
	if s.Assets != nil {
		r.assets.open(s.Assets)
	}
	r.Open(r.cold(s.Log))
}

// openSeams opens the state of the test seams. The NATS server has to be reachable.
func (p *process) openSeams(ctx context.Context, n *natsstore.Opener) (kv.Store, error) {
	conn, err := n.Dial("seams")
	if err != nil {
		return nil, err
	}
	p.later(conn.Close)
	return jetkv.Open(ctx, conn, natsstore.SeamBucket(n.Config.Replicas))
}

func (r *lazyLog) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stores != nil {
		r.stores.Close()
	}
}

// check returns why the log cannot be used; nil if it can.
func (r *lazyLog) check(ctx context.Context) error {
	r.mu.Lock()
	s, err := r.stores, r.err
	r.mu.Unlock()
	if s == nil {
		return fmt.Errorf("the run log is not open: %w", err)
	}
	return s.Connected(ctx)
}
