package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"waybill.dev/waybill/examples"
	auditstore "waybill.dev/waybill/internal/audit/jetstream"
	"waybill.dev/waybill/internal/blob"
	"waybill.dev/waybill/internal/blob/jetblob"
	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/jetkv"
	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/natsmon"
	"waybill.dev/waybill/internal/notify"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/gateway/discovery"
)

// stores are what the host keeps in NATS.
type stores struct {
	log       *jetstream.Log
	queue     *jetstream.Queue
	workflows kv.Store
	claims    kv.Store
	// quarantine is which runs were found damaged.
	quarantine kv.Store
	// waiting has the runs that wait, rates the starts of rate limits.
	waiting, rates kv.Store
	// leases is which dispatchers are alive, and peers how they reach each other.
	leases    kv.Store
	peers     *notify.Direct
	records   kv.Store
	sealed    kv.Store
	snapshots kv.Store
	audit     *auditstore.Store
	auditKeys kv.Store
	// annotations and notices are what is said of runs, kept and told.
	annotations kv.Store
	notices     *notify.Hub
	assets      blob.Store
	seams       seamStores
	webhooks    webhookStores
	conns       []*nats.Conn
	// names are the streams beside the log that hold what was acknowledged, kept how safe they are.
	// Those of the test seams are none of them.
	names []string
	kept  *natslink.Kept
	// monitor sees how the servers write; nil: nobody does.
	monitor *natsmon.Monitor
}

// hashedStreams chain their messages by hashes of their own.
var hashedStreams = []string{subject.Stream, auditstore.Stream} //nolint:gochecknoglobals // a constant

// natsDial connects to NATS under a name that its operator sees.
type natsDial func(name string) (*nats.Conn, error)

// openTries bounds how often the stores are opened.
const openTries = 4

// openStoresAgain opens the stores of an embedded server that may be started anew meanwhile, as
// after a crash that left a file of the log half written: nobody answers then.
func openStoresAgain(ctx context.Context, dial natsDial, cfg jetstream.Config, needs ...needs) (s *stores, err error) {
	for range openTries {
		s, err = openStores(ctx, dial, cfg, needs...)
		if err == nil {
			return s, nil
		}
		s.close()
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout) && !errors.Is(err, nats.ErrNoResponders) {
			return nil, err
		}
	}
	return nil, err
}

// openStores opens the run log and what the services need beside it, over connections
// of their own so that a busy reader does not hold up appends.
func openStores(ctx context.Context, dial natsDial, cfg jetstream.Config, needs ...needs) (*stores, error) {
	s := &stores{}
	logConn, err := s.connect(dial, "log")
	if err != nil {
		return s, err
	}
	if s.log, err = jetstream.Open(ctx, logConn, cfg); err != nil {
		return s, err
	}
	for _, open := range needs {
		if err := open(ctx, s, dial, cfg); err != nil {
			return s, err
		}
	}
	api, err := js.New(logConn)
	if err != nil {
		return s, fmt.Errorf("open stores: %w", err)
	}
	s.kept = natslink.NewKept(api, natslink.Copies{Replicas: cfg.Replicas, InSync: cfg.InSync}, time.Now, s.names...)
	return s, nil
}

// needs opens what one service needs beside the log.
type needs func(context.Context, *stores, natsDial, jetstream.Config) error

// bucket is one to open.
type bucket struct {
	into *kv.Store
	cfg  jetkv.Config
}

// openBuckets opens buckets that hold what was acknowledged, as all do but those of the test seams:
// to lose a claim starts two runs where one was promised, to lose what the audit log tells of keys
// hides that one is gone, and to lose what webhooks are still to deliver leaves it undelivered.
func (s *stores) openBuckets(ctx context.Context, conn *nats.Conn, cfg jetstream.Config, all ...bucket) (err error) {
	for _, b := range all {
		b.cfg.Replicas, b.cfg.OnDisk = cfg.Replicas, cfg.OnDisk
		if *b.into, err = jetkv.Open(ctx, conn, b.cfg); err != nil {
			return err
		}
		s.names = append(s.names, jetkv.Stream(b.cfg.Bucket))
	}
	return nil
}

// dispatcherNeeds are the queue, and what is kept for the runs that are carried out.
func dispatcherNeeds(ctx context.Context, s *stores, dial natsDial, cfg jetstream.Config) error {
	conn, err := s.connect(dial, "queue")
	if err != nil {
		return err
	}
	reader, err := jetstream.Open(ctx, conn, cfg)
	if err != nil {
		return err
	}
	if s.queue, err = reader.Queue(ctx); err != nil {
		return err
	}
	s.peers = notify.NewDirect(conn, "dispatcher")
	if err := s.openWaiting(ctx, conn, cfg); err != nil {
		return err
	}
	return s.openBuckets(
		ctx, conn, cfg,
		bucket{&s.workflows, jetkv.Config{Bucket: "waybill_workflows", Description: "workflow definitions"}},
		bucket{&s.claims, jetkv.Config{Bucket: "waybill_claims", Description: "active run of a scope"}},
		bucket{&s.quarantine, jetkv.Config{Bucket: "waybill_quarantine", Description: "runs whose log was found damaged", MarkerTTL: quarantineMarkerTTL}},
		bucket{&s.leases, jetkv.Config{Bucket: "waybill_leases", Description: "dispatchers that are alive", MarkerTTL: leaseMarkerTTL}},
		bucket{&s.sealed, jetkv.Config{Bucket: "waybill_sealed", Description: "sealed clear values of runs whose log is masked", TTL: sealedTTL}},
		bucket{&s.snapshots, jetkv.Config{Bucket: "waybill_snapshots", Description: "folded states of long runs", TTL: snapshotTTL, MarkerTTL: time.Hour}},
	)
}

// snapshotTTL is how long the snapshot of a run without events is kept: after that, the run is read
// from its log once.
const snapshotTTL = 30 * 24 * time.Hour

// quarantineMarkerTTL is how long it is remembered that a run is not in quarantine any more:
// longer than a dispatcher takes to write down that it is.
const quarantineMarkerTTL = time.Hour

// leaseMarkerTTL is how long it is remembered that the lease of a dead dispatcher was deleted: an
// observer that was cut off for longer reads the bucket again.
const leaseMarkerTTL = 10 * time.Minute

// acceptorNeeds are assets.
func acceptorNeeds(ctx context.Context, s *stores, dial natsDial, cfg jetstream.Config) error {
	conn, err := s.connect(dial, "assets")
	if err != nil {
		return err
	}
	assets := assetBucket(cfg.Replicas)
	assets.OnDisk = cfg.OnDisk
	s.assets, err = jetblob.Open(ctx, conn, assets)
	s.names = append(s.names, jetblob.Stream(assets.Bucket))
	return err
}

// gatewayNeeds are what is kept about requests, and for webhooks.
func gatewayNeeds(ctx context.Context, s *stores, dial natsDial, cfg jetstream.Config) error {
	conn, err := s.connect(dial, "requests")
	if err != nil {
		return err
	}
	if err := s.openBuckets(
		ctx, conn, cfg,
		bucket{&s.auditKeys, jetkv.Config{Bucket: "waybill_audit_keys", Description: "keys that the audit log tells of"}},
		bucket{&s.annotations, jetkv.Config{Bucket: "waybill_annotations", Description: "what is said of runs"}},
		bucket{&s.records, jetkv.Config{Bucket: "waybill_idempotency", Description: "answers to keyed requests", TTL: discovery.RetentionSeconds * time.Second}},
	); err != nil {
		return err
	}
	if s.notices, err = notify.New(conn, "annotated"); err != nil {
		return err
	}
	if s.audit, err = auditstore.Open(ctx, conn, cfg.Replicas, cfg.OnDisk); err != nil {
		return err
	}
	s.names = append(s.names, auditstore.Stream)
	return s.openWebhooks(ctx, dial, cfg)
}

// sealedTTL is how long a run with sensitive values may take: they are erased when it
// ends, and are gone after this in any case. A run may wait for workflow.MaxWait at a node.
const sealedTTL = 400 * 24 * time.Hour

// assetBucket is where assets are kept, by a whole host and by an acceptor alone.
func assetBucket(replicas int) jetblob.Config {
	return jetblob.Config{Bucket: "waybill_assets", Description: "images, sounds and files of models", Replicas: replicas}
}

func (s *stores) connect(dial natsDial, name string) (*nats.Conn, error) {
	nc, err := dial(name)
	if err != nil {
		return nil, err
	}
	s.conns = append(s.conns, nc)
	return nc, nil
}

func (s *stores) close() {
	if s.queue != nil {
		s.queue.Close()
	}
	for _, nc := range s.conns {
		// What was handed back before must still go out.
		_ = nc.FlushTimeout(time.Second)
		nc.Close()
	}
}

// kindFiles joins the examples' kinds and the operator's folder into one.
func kindFiles(dir string) (fs.FS, error) {
	files := flatFS{}
	err := fs.WalkDir(examples.FS, ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(name, ".schema.json") {
			files[path.Base(name)] = located{examples.FS, name}
		}
		return err
	})
	if err != nil || dir == "" {
		return files, err
	}
	own := os.DirFS(dir)
	entries, err := fs.ReadDir(own, ".")
	if err != nil {
		return nil, fmt.Errorf("--kinds %s: %w", dir, err)
	}
	for _, e := range entries {
		if !e.IsDir() {
			files[e.Name()] = located{own, e.Name()} // the operator's file beats an example's
		}
	}
	return files, nil
}

// flatFS is one folder of files from several places.
type flatFS map[string]located

type located struct {
	fs   fs.FS
	name string
}

// Open opens a file of the folder.
func (f flatFS) Open(name string) (fs.File, error) {
	l, ok := f[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return l.fs.Open(l.name)
}

// ReadDir lists the folder; the only one there is.
func (f flatFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if name != "." {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	var out []fs.DirEntry
	for file, l := range f {
		info, err := fs.Stat(l.fs, l.name)
		if err != nil {
			return nil, err
		}
		out = append(out, renamed{fs.FileInfoToDirEntry(info), file})
	}
	return out, nil
}

type renamed struct {
	fs.DirEntry
	name string
}

func (r renamed) Name() string { return r.name }
