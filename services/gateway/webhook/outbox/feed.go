package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// Log is what the feeder reads.
type Log interface {
	runlog.Follower
	runlog.Pager
}

// Feeder reads the run log in order and offers what is subscribed to its lanes. Of all
// replicas one feeds at a time; a record holds its name and how far it is.
type Feeder struct {
	Log     Log
	KV      kv.Store // of the feed's record
	View    *subscription.View
	Lanes   *Lanes
	Records *Records
	// Owner names this process.
	Owner  string
	Lease  time.Duration
	Clock  func() time.Time
	Logger *slog.Logger
}

// retry is the wait after something failed.
const retry = time.Second

// Run feeds until ctx ends, whenever no other replica does.
func (f *Feeder) Run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-f.View.Ready():
	}
	for ctx.Err() == nil {
		wait, err := f.turn(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, errRewind) && !errors.Is(err, errLost) {
			f.Logger.Warn("webhooks: the run log is not read, will try again", "error", err)
			wait = retry
		}
		if wait > 0 {
			lifecycle.Wait(ctx, wait)
		}
	}
}

// turn feeds until something ends it; a wait says when to look again.
func (f *Feeder) turn(ctx context.Context) (time.Duration, error) {
	changed := f.View.Changed()
	if len(f.View.All()) == 0 { // nobody wants anything: nothing is read, nothing written
		select {
		case <-ctx.Done():
		case <-changed:
		}
		return 0, nil
	}
	t, wait, err := f.begin(ctx)
	if err != nil || wait > 0 {
		return wait, err
	}
	err = t.follow(ctx)
	if ctx.Err() != nil { // another replica need not wait for the lease to pass
		t.release(context.WithoutCancel(ctx))
	}
	return 0, err
}

// position is the record of the feed.
type position struct {
	// Pos is how far the log was fed, to all subscriptions that were made up to Known.
	Pos   uint64 `json:"pos"`
	Known uint64 `json:"known"`
	Owner string `json:"owner,omitempty"`
	// Until is when another may take over.
	Until time.Time `json:"until,omitzero"`
}

const feedKey = "feed"

// Fed is up to where what was offered will not be offered again, whoever dies.
func (f *Feeder) Fed(ctx context.Context) (uint64, error) {
	e, err := f.KV.Get(ctx, feedKey)
	if err != nil {
		return 0, err
	}
	var p position
	if err := json.Unmarshal(e.Value, &p); err != nil {
		return 0, fmt.Errorf("read the feed's record: %w", err)
	}
	return p.Pos, nil
}

// Errors that end a turn.
var (
	errLost   = errors.New("another replica feeds now")
	errRewind = errors.New("a subscription is older than what was read last")
)

// selected picks the subscriptions of a frame's tenant that the frame is for.
func (f *Feeder) selected(ctx context.Context, fr *frame.Frame, of []*subscription.Entry) ([]*subscription.Entry, error) {
	if fr.Kind.Begins() {
		_, err := f.Records.Note(fr)
		return nil, f.unreadable(fr, err)
	}
	var out []*subscription.Entry
	for _, e := range of {
		if !e.Wants(fr.Types) || !e.State.Health.FailedAt.IsZero() {
			continue
		}
		rec, err := f.Records.Of(ctx, fr.Run)
		if errors.Is(err, runlog.ErrUnavailable) {
			return nil, fmt.Errorf("feed run %s: %w", fr.Run.RunID, err)
		}
		if err != nil {
			return nil, f.unreadable(fr, err)
		}
		if e.Covers(rec) {
			out = append(out, e)
		}
	}
	return out, nil
}

// unreadable notes a run whose record cannot be read; the others go on.
func (f *Feeder) unreadable(fr *frame.Frame, err error) error {
	if err != nil {
		f.Logger.Error("webhooks: the record of a run cannot be read, its events are not delivered", "run", fr.Run.RunID, "error", err)
	}
	return nil
}
