// Package natsstore opens the stores of a host in NATS: the run log, and the buckets and streams of
// each service.
package natsstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	auditstore "waybill.dev/waybill/internal/audit/jetstream"
	"waybill.dev/waybill/internal/blob"
	"waybill.dev/waybill/internal/blob/jetblob"
	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/jetkv"
	"waybill.dev/waybill/internal/natslink"
	"waybill.dev/waybill/internal/natsmon"
	"waybill.dev/waybill/internal/notify"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/services/gateway/discovery"
)

// Stores are the host's stores in NATS.
type Stores struct {
	Log       *jetstream.Log
	Queue     *jetstream.Queue
	Workflows kv.Store
	Claims    kv.Store
	// Quarantine has the runs whose log is damaged.
	Quarantine kv.Store
	// Waiting has the runs that wait, Rates the starts under rate limits.
	Waiting, Rates kv.Store
	// Leases has the leases of dispatchers; Peers sends requests between them.
	Leases kv.Store
	Peers  *notify.Direct
	// Retention has the legal holds and the clock of retention.
	Retention kv.Store
	Records   kv.Store
	Sealed    kv.Store
	Snapshots kv.Store
	Audit     *auditstore.Store
	AuditKeys kv.Store
	// Annotations stores annotations, Notices publishes new ones.
	Annotations kv.Store
	// Desk stores saved views and the assignees of questions.
	Desk    kv.Store
	Notices *notify.Hub
	// RateUsage carries what gateways admitted.
	RateUsage *notify.Hub
	Assets    blob.Store
	Seams     seamStores
	// erasable are the stores from which a dispatcher erases runs; any service may fill them.
	erasable erasable
	Webhooks webhookStores
	conns    []*nats.Conn
	// names are the streams, except the log and those of the test seams, that hold acknowledged data.
	// kept checks how many copies of them are in sync.
	names []string
	kept  *natslink.Kept
	// Monitor checks whether the servers sync every write; nil disables it.
	Monitor *natsmon.Monitor
}

// Dial connects under a client name that the server's operator sees.
type Dial func(name string) (*nats.Conn, error)

// openTries is the maximum number of tries of OpenEmbedded.
const openTries = 4

// OpenEmbedded opens the stores of an embedded server. It tries again if the server does not answer
// because it restarts, as after a crash that left a half-written file.
func OpenEmbedded(ctx context.Context, dial Dial, cfg jetstream.Config, needs ...Needs) (s *Stores, err error) {
	for range openTries {
		s, err = Open(ctx, dial, cfg, needs...)
		if err == nil {
			return s, nil
		}
		s.Close()
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout) && !errors.Is(err, nats.ErrNoResponders) {
			return nil, err
		}
	}
	return nil, err
}

// Open opens the run log and what the services need, each over its own connection, so that a busy
// reader does not delay appends. Close the stores that it returns, also after an error.
func Open(ctx context.Context, dial Dial, cfg jetstream.Config, needs ...Needs) (*Stores, error) {
	s := &Stores{}
	logConn, err := s.connect(dial, "log")
	if err != nil {
		return s, err
	}
	if s.Log, err = jetstream.Open(ctx, logConn, cfg); err != nil {
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

// Needs opens what one service needs in addition to the log.
type Needs func(context.Context, *Stores, Dial, jetstream.Config) error

// bucket is a bucket to open.
type bucket struct {
	into *kv.Store
	cfg  jetkv.Config
}

// openBuckets opens buckets of acknowledged data, which are all except those of the test seams. A
// lost dedup record would allow a second run, a lost audit key would hide a deleted key, and a lost
// lane would leave webhooks undelivered.
func (s *Stores) openBuckets(ctx context.Context, conn *nats.Conn, cfg jetstream.Config, all ...bucket) (err error) {
	for _, b := range all {
		b.cfg.Replicas, b.cfg.OnDisk = cfg.Replicas, cfg.OnDisk
		if *b.into, err = jetkv.Open(ctx, conn, b.cfg); err != nil {
			return err
		}
		s.names = append(s.names, jetkv.Stream(b.cfg.Bucket))
	}
	return nil
}

// ForDispatcher opens the queue and the stores of runs in execution.
func ForDispatcher(ctx context.Context, s *Stores, dial Dial, cfg jetstream.Config) error {
	conn, err := s.connect(dial, "queue")
	if err != nil {
		return err
	}
	reader, err := jetstream.Open(ctx, conn, cfg)
	if err != nil {
		return err
	}
	if s.Queue, err = reader.Queue(ctx); err != nil {
		return err
	}
	s.Peers = notify.NewDirect(conn, "dispatcher")
	if err := s.openWaiting(ctx, conn, cfg); err != nil {
		return err
	}
	if err := s.openErasable(ctx, conn, cfg); err != nil {
		return err
	}
	return s.openBuckets(
		ctx, conn, cfg,
		bucket{&s.Workflows, jetkv.Config{Bucket: "waybill_workflows", Description: "workflow definitions", Erasable: true}},
		bucket{
			&s.Retention,
			jetkv.Config{
				Bucket:      "waybill_retention",
				Description: "legal holds of runs, and the clock of retention",
				MarkerTTL:   time.Hour,
				Erasable:    true,
			},
		},
		bucket{&s.Claims, jetkv.Config{Bucket: "waybill_claims", Description: "active run of a scope", Erasable: true}},
		bucket{
			&s.Quarantine,
			jetkv.Config{
				Bucket:      "waybill_quarantine",
				Description: "runs whose log was found damaged",
				MarkerTTL:   quarantineMarkerTTL,
				Erasable:    true,
			},
		},
		bucket{
			&s.Leases,
			jetkv.Config{Bucket: "waybill_leases", Description: "dispatchers that are alive", MarkerTTL: leaseMarkerTTL},
		},
		bucket{
			&s.Sealed,
			jetkv.Config{
				Bucket:      "waybill_sealed",
				Description: "sealed clear values of runs whose log is masked",
				TTL:         sealedTTL,
			},
		},
		bucket{
			&s.Snapshots,
			jetkv.Config{
				Bucket:      "waybill_snapshots",
				Description: "folded states of long runs",
				TTL:         snapshotTTL,
				MarkerTTL:   time.Hour,
				Erasable:    true,
			},
		},
	)
}

// snapshotTTL is the lifetime of the stored snapshot of a run without new events. After that, the run
// is read from its log once.
const snapshotTTL = 30 * 24 * time.Hour

// quarantineMarkerTTL is how long the release of a run from quarantine is remembered: longer than a
// dispatcher takes to put it there.
const quarantineMarkerTTL = time.Hour

// leaseMarkerTTL is how long the deletion of a dead dispatcher's lease is remembered. An observer
// that was disconnected for longer reads the bucket again.
const leaseMarkerTTL = 10 * time.Minute

// ForAcceptor opens the store of assets.
func ForAcceptor(ctx context.Context, s *Stores, dial Dial, cfg jetstream.Config) error {
	conn, err := s.connect(dial, "assets")
	if err != nil {
		return err
	}
	assets := assetBucket(cfg.Replicas)
	assets.OnDisk = cfg.OnDisk
	s.Assets, err = jetblob.Open(ctx, conn, assets)
	s.names = append(s.names, jetblob.Stream(assets.Bucket))
	return err
}

// ForGateway opens the stores of requests and webhooks.
func ForGateway(ctx context.Context, s *Stores, dial Dial, cfg jetstream.Config) error {
	conn, err := s.connect(dial, "requests")
	if err != nil {
		return err
	}
	if err := s.openBuckets(
		ctx, conn, cfg,
		bucket{&s.AuditKeys, jetkv.Config{Bucket: "waybill_audit_keys", Description: "names of keys in the audit log"}},
		bucket{&s.Annotations, annotationsBucket()},
		bucket{&s.Desk, deskBucket()},
		bucket{
			&s.Records,
			jetkv.Config{
				Bucket:      "waybill_idempotency",
				Description: "answers to keyed requests",
				TTL:         discovery.RetentionSeconds * time.Second,
			},
		},
	); err != nil {
		return err
	}
	if s.Notices, err = notify.New(conn, "annotated"); err != nil {
		return err
	}
	if s.RateUsage, err = notify.New(conn, "rates"); err != nil {
		return err
	}
	if s.Audit, err = auditstore.Open(ctx, conn, cfg.Replicas, cfg.OnDisk); err != nil {
		return err
	}
	s.names = append(s.names, auditstore.Stream)
	return s.openWebhooks(ctx, dial, cfg)
}

// sealedTTL is the maximum duration of a run with sensitive values. The values are erased when the
// run ends, and after this time at the latest. A run may wait for workflow.MaxWait at a node.
const sealedTTL = 400 * 24 * time.Hour

// assetBucket is the bucket of assets.
func assetBucket(replicas int) jetblob.Config {
	return jetblob.Config{Bucket: "waybill_assets", Description: "images, sounds and files of models", Replicas: replicas}
}

func (s *Stores) connect(dial Dial, name string) (*nats.Conn, error) {
	nc, err := dial(name)
	if err != nil {
		return nil, err
	}
	s.conns = append(s.conns, nc)
	return nc, nil
}

// Close closes the connections.
func (s *Stores) Close() {
	if s.Queue != nil {
		s.Queue.Close()
	}
	for _, nc := range s.conns {
		// Runs that were released just now still have to be published.
		_ = nc.FlushTimeout(time.Second)
		nc.Close()
	}
}
