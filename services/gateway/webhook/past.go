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
	for {
		fed, err := s.feeder.fedAll(ctx)
		if err != nil {
			return fmt.Errorf("%w: position of the webhooks: %w", runlog.ErrUnavailable, err)
		}
		if fed >= pos || len(s.view.All()) == 0 {
			return nil
		}
		if !lifecycle.Wait(ctx, pastEvery) {
			return fmt.Errorf("%w: webhooks are at %d of the log, not at %d: %w", runlog.ErrUnavailable, fed, pos, ctx.Err())
		}
	}
}

// fedAll returns the position up to which no frame of any tenant is offered again.
func (f *feeder) fedAll(ctx context.Context) (uint64, error) {
	e, err := f.KV.Get(ctx, feedKey)
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
