package audit

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Config is how often checkpoints are made. Every and Interval are advertised.
type Config struct {
	// Every is the maximum number of entries between two checkpoints.
	Every int64
	// Interval is the maximum time until an entry has a checkpoint.
	Interval time.Duration
	// Tick is how often Run checks for due checkpoints.
	Tick time.Duration
}

// DefaultConfig returns the values of the contract (OpenWOP host contract §10.7).
func DefaultConfig() Config {
	return Config{Every: 1000, Interval: 300 * time.Second, Tick: 10 * time.Second}
}

// Scrub removes the secrets of a tenant from a JSON document.
type Scrub func(ctx context.Context, tenant string, doc []byte) ([]byte, error)

// Deps are the collaborators.
type Deps struct {
	Store  Store
	Key    *Key
	Scrub  Scrub
	Clock  func() time.Time
	Logger *slog.Logger
}

// Log is the audit log. It is safe for concurrent use, including by several processes over
// one store.
type Log struct {
	cfg   Config
	store Store
	key   *Key
	scrub Scrub
	clock func() time.Time
	log   *slog.Logger
	// checkpointDue gets a token when Every entries need a checkpoint.
	checkpointDue chan struct{}
	// readers is a semaphore for reads and verifications.
	readers chan struct{}

	mu          sync.Mutex // guards what follows
	writers     map[string]*tenantWriter
	backlog     []backlogItem
	backlogSize int // entries in backlog
	// broken are the tenants whose log is damaged, and how.
	broken map[string]string
}

// maxReaders limits concurrent reads and verifications. Each is a consumer of the store.
const maxReaders = 4

// New makes a log over a store. Run makes its checkpoints.
func New(cfg Config, d Deps) *Log {
	return &Log{
		cfg: cfg, store: d.Store, key: d.Key, scrub: d.Scrub, clock: d.Clock, log: d.Logger,
		checkpointDue: make(chan struct{}, 1), readers: make(chan struct{}, maxReaders), writers: map[string]*tenantWriter{}, broken: map[string]string{},
	}
}

// Profile has the advertised properties of the log.
type Profile struct {
	PublicKey       string
	EveryEntries    int64
	IntervalSeconds int64
}

// Profile returns the advertised properties of the log.
func (l *Log) Profile() Profile {
	return Profile{
		PublicKey:       l.key.Public(),
		EveryEntries:    l.cfg.Every,
		IntervalSeconds: int64(l.cfg.Interval / time.Second),
	}
}

// Record records entries; see Recorder.
func (l *Log) Record(ctx context.Context, tenant string, entries ...Entry) error {
	return l.record(ctx, tenant, entries, true)
}

// record records entries. With buffer, entries that cannot be recorded go to the backlog.
func (l *Log) record(ctx context.Context, tenant string, entries []Entry, keep bool) error {
	if err := validateEntries(tenant, entries); err != nil || len(entries) == 0 {
		return err
	}
	at := l.clock()
	drafts, err := l.drafts(ctx, tenant, entries, at)
	if err != nil {
		if keep {
			l.addToBacklog(backlogItem{tenant: tenant, entries: entries, at: at})
		}
		return err
	}
	return l.appendPending(ctx, tenant, &pending{drafts: drafts, buffer: keep, done: make(chan error, 1)})
}

// appendPending waits until the entries are stored or have failed.
func (l *Log) appendPending(ctx context.Context, tenant string, p *pending) error {
	l.writerFor(tenant).enqueue(p)
	select {
	case err := <-p.done:
		if err != nil {
			return unavailable(err)
		}
		return nil
	case <-ctx.Done():
		return unavailable(ctx.Err())
	}
}

func (l *Log) writerFor(tenant string) *tenantWriter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.writers[tenant] == nil {
		l.writers[tenant] = &tenantWriter{log: l, list: List{tenant, Entries}}
	}
	return l.writers[tenant]
}

// acquireReader waits until the caller may read. Call release when done.
func (l *Log) acquireReader(ctx context.Context) (release func(), err error) {
	select {
	case l.readers <- struct{}{}:
		return func() { <-l.readers }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
