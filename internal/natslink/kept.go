package natslink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
)

// keptTry bounds one question about a stream.
const keptTry = 2 * time.Second

// keptGrace is for how long a stream may lack something, or have nobody who answers for it, once it
// was well: a change of leaders takes as long, and there are many streams that change theirs
// when a server goes.
const keptGrace = 5 * time.Second

// Kept are streams that hold what was acknowledged.
type Kept struct {
	want  Copies
	api   js.JetStream
	names []string
	clock func() time.Time

	mu   sync.Mutex // guards well
	well map[string]time.Time
}

// NewKept says which streams are to be kept how. Whoever made it sees to it that the api lives.
func NewKept(api js.JetStream, want Copies, clock func() time.Time, names ...string) *Kept {
	return &Kept{want: want, api: api, names: names, clock: clock, well: map[string]time.Time{}}
}

// Check tells, by their names, which streams are kept less safely than they should be, or cannot be
// reached. All are asked at the same time, one question each.
func (k *Kept) Check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keptTry)
	defer cancel()
	errs := make([]error, len(k.names))
	var wg sync.WaitGroup
	for i, name := range k.names {
		wg.Go(func() { errs[i] = k.ask(ctx, name) })
	}
	wg.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock()
	for i, name := range k.names {
		switch {
		case errs[i] == nil:
			k.well[name] = now
		case now.Sub(k.well[name]) < keptGrace:
			errs[i] = nil
		}
	}
	return errors.Join(errs...)
}

func (k *Kept) ask(ctx context.Context, name string) error {
	s, err := k.api.Stream(ctx, name)
	if err != nil {
		return fmt.Errorf("stream %s: %w", name, err)
	}
	return k.want.Check(s.CachedInfo())
}
