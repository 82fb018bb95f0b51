package audit

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Config says how often checkpoints are made. Both intervals are advertised.
type Config struct {
	// Every so many entries there is a checkpoint at the latest.
	Every int64
	// Interval is how long an entry is without one at the longest.
	Interval time.Duration
	// Tick is how often the clock is looked at.
	Tick time.Duration
}

// DefaultConfig is what the contract asks for (OpenWOP host contract §10.7).
func DefaultConfig() Config {
	return Config{Every: 1000, Interval: 300 * time.Second, Tick: 10 * time.Second}
}

// Scrub takes secrets out of a JSON document that is about a tenant.
type Scrub func(ctx context.Context, tenant string, doc []byte) ([]byte, error)

// Deps are the collaborators.
type Deps struct {
	Store  Store
	Key    *Key
	Scrub  Scrub
	Clock  func() time.Time
	Logger *slog.Logger
}

// Log is the audit log. It is safe for concurrent use, also by several processes over
// one store.
type Log struct {
	cfg   Config
	store Store
	key   *Key
	scrub Scrub
	clock func() time.Time
	log   *slog.Logger
	// full gets a token when a checkpoint is due by number.
	full chan struct{}
	// readers bounds how many read the log at a time.
	readers chan struct{}

	mu    sync.Mutex // guards what follows
	lanes map[string]*lane
	debts []owed
	owing int // entries of debts
}

// maxReaders bounds concurrent reads and verifications: each is a consumer of the store.
const maxReaders = 4

// New makes a log over a store; Run makes its checkpoints.
func New(cfg Config, d Deps) *Log {
	return &Log{
		cfg: cfg, store: d.Store, key: d.Key, scrub: d.Scrub, clock: d.Clock, log: d.Logger,
		full: make(chan struct{}, 1), readers: make(chan struct{}, maxReaders), lanes: map[string]*lane{},
	}
}

// Profile is what a host with this log advertises of it.
type Profile struct {
	PublicKey       string
	EveryEntries    int64
	IntervalSeconds int64
}

// Profile tells how the log can be checked.
func (l *Log) Profile() Profile {
	return Profile{PublicKey: l.key.Public(), EveryEntries: l.cfg.Every, IntervalSeconds: int64(l.cfg.Interval / time.Second)}
}

// Record takes entries in; see Recorder.
func (l *Log) Record(ctx context.Context, tenant string, entries ...Entry) error {
	return l.record(ctx, tenant, entries, true)
}

// record keeps entries that could not be recorded for later, if it is told to.
func (l *Log) record(ctx context.Context, tenant string, entries []Entry, keep bool) error {
	if err := check(tenant, entries); err != nil || len(entries) == 0 {
		return err
	}
	at := l.clock()
	drafts, err := l.drafts(ctx, tenant, entries, at)
	if err != nil {
		if keep {
			l.owe(owed{tenant: tenant, entries: entries, at: at})
		}
		return err
	}
	return l.enter(ctx, tenant, &pending{drafts: drafts, keep: keep, done: make(chan error, 1)})
}

// enter waits until what is pending has been stored, or could not be.
func (l *Log) enter(ctx context.Context, tenant string, p *pending) error {
	l.lane(tenant).enter(p)
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

func (l *Log) lane(tenant string) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lanes[tenant] == nil {
		l.lanes[tenant] = &lane{l: l, list: List{tenant, Entries}}
	}
	return l.lanes[tenant]
}

// hold waits for a place among the readers.
func (l *Log) hold(ctx context.Context) (release func(), err error) {
	select {
	case l.readers <- struct{}{}:
		return func() { <-l.readers }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
