package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

const (
	// pastEvery is how often the position of the feed is read, pastLimit how long a caller waits for it.
	pastEvery = 100 * time.Millisecond
	pastLimit = 10 * time.Second
)

// Past returns when the lanes of all subscriptions have what they want of the log up to a position: from
// then on frames are read run by run only. Errors: runlog.ErrUnavailable if the feed does not get there
// in time.
func (s *Service) Past(ctx context.Context, pos uint64) error {
	ctx, cancel := context.WithTimeout(ctx, pastLimit)
	defer cancel()
	select {
	case <-s.view.Ready():
	case <-ctx.Done():
		return fmt.Errorf("%w: webhooks are not read yet: %w", runlog.ErrUnavailable, ctx.Err())
	}
	return awaitFed(ctx, s.feeder.KV, pos, func(context.Context) (bool, error) { return len(s.view.All()) > 0, nil })
}

// Past is that of a Service, for a process without one: records has the subscriptions. It waits for a
// feed that no gateway carries out. Errors: runlog.ErrUnavailable.
func Past(ctx context.Context, records kv.Store, pos uint64) error {
	ctx, cancel := context.WithTimeout(ctx, pastLimit)
	defer cancel()
	return awaitFed(ctx, records, pos, subscription.NewStore(records).Any)
}

// awaitFed waits until the feed is at a position, while there are subscriptions.
func awaitFed(ctx context.Context, records kv.Store, pos uint64, subscribed func(context.Context) (bool, error)) error {
	for {
		some, err := subscribed(ctx)
		if err == nil && !some {
			return nil
		}
		var fed uint64
		if err == nil {
			fed, err = fedAll(ctx, records)
		}
		switch {
		case err != nil:
			return fmt.Errorf("%w: position of the webhooks: %w", runlog.ErrUnavailable, err)
		case fed >= pos:
			return nil
		}
		if !lifecycle.Wait(ctx, pastEvery) {
			return fmt.Errorf("%w: webhooks are at %d of the log, not at %d: %w", runlog.ErrUnavailable, fed, pos, ctx.Err())
		}
	}
}

// fedAll returns the position up to which no frame of any tenant is offered again.
func fedAll(ctx context.Context, records kv.Store) (uint64, error) {
	e, err := records.Get(ctx, feedKey)
	if errors.Is(err, kv.ErrNotFound) || errors.Is(err, kv.ErrDamaged) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var r feedRecord
	if json.Unmarshal(e.Value, &r) != nil {
		return 0, nil //nolint:nilerr // the next turn replaces a damaged record
	}
	return r.Pos, nil
}
