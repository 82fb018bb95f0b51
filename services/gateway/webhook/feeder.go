package webhook

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

// Log is what webhooks read of the run log.
type Log interface {
	runlog.Follower
	runlog.Pager
	runlog.TenantPager
}

// feeder reads the run log in order and offers frames to the lanes of subscriptions. One
// replica feeds at a time; a record holds its name and its position in the log.
type feeder struct {
	Log     Log
	KV      kv.Store // holds the feed's record
	View    *subscription.View
	Store   *subscription.Store
	Lanes   *laneStore
	Limit   *laneLimit
	Records *runRecords
	// Owner names this process.
	Owner  string
	Limits FeedLimits
	Lease  time.Duration
	Clock  func() time.Time
	Logger *slog.Logger
	Counts *counts
}

// feedRetry is the wait after a failure.
const feedRetry = time.Second

// Run feeds until ctx ends, while no other replica does.
func (f *feeder) Run(ctx context.Context) {
	for _, known := range []<-chan struct{}{f.View.Ready(), f.Limit.ready} {
		select {
		case <-ctx.Done():
			return
		case <-known:
		}
	}
	for ctx.Err() == nil {
		wait, err := f.feedOnce(ctx)
		if err != nil && ctx.Err() == nil && !errors.Is(err, errIdle) && !errors.Is(err, errLeaseLost) {
			f.Logger.Warn("webhooks: cannot read the run log, will retry", "error", err)
			wait = feedRetry
		}
		if wait > 0 {
			lifecycle.Wait(ctx, wait)
		}
	}
}

// feedOnce feeds until an error ends the turn. It returns the wait before the
// next turn.
func (f *feeder) feedOnce(ctx context.Context) (time.Duration, error) {
	changed := f.View.Changed()
	if len(f.View.All()) == 0 { // no subscriptions: nothing to read
		select {
		case <-ctx.Done():
		case <-changed:
		}
		return 0, nil
	}
	t, wait, err := f.acquire(ctx)
	if err != nil || wait > 0 {
		return wait, err
	}
	err = t.follow(ctx)
	if ctx.Err() != nil { // another replica can take over without waiting for the lease
		t.release(context.WithoutCancel(ctx))
	}
	return 0, err
}

// feedRecord is the stored progress of the feed.
type feedRecord struct {
	// Pos is the log position fed to all subscriptions with a revision up to Known.
	Pos   uint64 `json:"pos"`
	Known uint64 `json:"known"`
	// Behind are the positions of the tenants that are behind, Read is that of the others. Earlier
	// versions have Pos only.
	Read   uint64            `json:"read,omitempty"`
	Behind map[string]uint64 `json:"behind,omitempty"`
	Owner  string            `json:"owner,omitempty"`
	// Until is when another replica may take over.
	Until time.Time `json:"until,omitzero"`
}

// others is the position of the tenants that are not behind.
func (r *feedRecord) others() uint64 { return max(r.Pos, r.Read) }

// position is the position fed to a tenant.
func (r *feedRecord) position(tenant string) uint64 {
	if pos, behind := r.Behind[tenant]; behind {
		return pos
	}
	return r.others()
}

const feedKey = "feed"

// Fed returns the position up to which no frame of a tenant is offered again, even if a replica
// crashes.
func (f *feeder) Fed(ctx context.Context, tenant string) (uint64, error) {
	e, err := f.KV.Get(ctx, feedKey)
	if err != nil && !errors.Is(err, kv.ErrDamaged) {
		return 0, err
	}
	var p feedRecord
	if err != nil || json.Unmarshal(e.Value, &p) != nil {
		return 0, nil //nolint:nilerr // the next turn replaces a damaged record
	}
	return p.position(tenant), nil
}

// Errors that end a turn without a failure.
var (
	errLeaseLost = errors.New("another replica has taken over the feed")
	errIdle      = errors.New("no subscriptions") // the last one was deleted
)

// selectSubscriptions returns those subscriptions of the frame's tenant that want the frame.
func (f *feeder) selectSubscriptions(ctx context.Context, fr *frame.Frame, of []*subscription.Entry) ([]*subscription.Entry, error) {
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
			f.logUnreadable(fr, err)
			return nil, nil
		}
		if e.Covers(rec) {
			out = append(out, e)
		}
	}
	return out, nil
}

// logUnreadable logs a run whose record cannot be read. Other runs continue.
func (f *feeder) logUnreadable(fr *frame.Frame, err error) {
	if err != nil {
		f.Logger.Error("webhooks: cannot read the record of a run, its events are not delivered", "run", fr.Run.RunID, "error", err)
	}
}
