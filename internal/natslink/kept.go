package natslink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
)

// keptTry limits one request about a stream.
const keptTry = 2 * time.Second

// keptGrace is how long a healthy stream may be degraded or leaderless before that is reported: a
// change of leaders takes about as long, and many streams change theirs when a server stops.
const keptGrace = 5 * time.Second

// keptEvery is the interval of checks of a healthy stream. It is shorter than keptGrace, so that a degraded
// stream is not reported later.
const keptEvery = keptGrace - time.Second

// Kept monitors streams that hold acknowledged data.
type Kept struct {
	want  Copies
	api   js.JetStream
	names []string
	clock func() time.Time

	mu   sync.Mutex // guards well
	well map[string]time.Time
}

// NewKept returns a monitor of streams and their required replication. The caller keeps the api
// open.
func NewKept(api js.JetStream, want Copies, clock func() time.Time, names ...string) *Kept {
	return &Kept{want: want, api: api, names: names, clock: clock, well: map[string]time.Time{}}
}

// Check returns the names of degraded and unreachable streams. It sends one request for each stream that
// was not healthy a moment ago, concurrently.
func (k *Kept) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keptTry)
	defer cancel()
	due := k.due()
	errs := make([]error, len(due))
	var wg sync.WaitGroup
	for i, name := range due {
		wg.Go(func() { errs[i] = k.ask(ctx, name) })
	}
	wg.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock()
	for i, name := range due {
		switch {
		case errs[i] == nil:
			k.well[name] = now
		case now.Sub(k.well[name]) < keptGrace:
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

// due returns the streams to ask about.
func (k *Kept) due() (names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock()
	for _, name := range k.names {
		if now.Sub(k.well[name]) >= keptEvery {
			names = append(names, name)
		}
	}
	return names
}

func (k *Kept) ask(ctx context.Context, name string) error {
	s, err := k.api.Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("stream %s: %w", name, err)
	}
	return k.want.Check(s.CachedInfo())
}
