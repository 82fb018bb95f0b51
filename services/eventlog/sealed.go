package eventlog

import (
	"context"
	"errors"
	"fmt"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/cold"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
)

// withCold is a store that reads the frames of sealed runs from the cold store. The store below has their
// rows.
type withCold struct {
	store.Store

	// cold is nil in a process without a cold store.
	cold cold.Reader
	log  runlog.Reader
	// unreadable reports a run whose object is damaged.
	unreadable func(run subject.Run, err error)
}

// Frames returns frames of a run; see store.Reader. A run that is being sealed is in one of the two, or
// in both. Errors: also runlog.ErrErased, runlog.ErrSealed, frame.ErrDamaged and runlog.ErrUnavailable.
func (s withCold) Frames(ctx context.Context, key store.Key, from, limit int) ([]store.Frame, error) {
	page, err := s.Store.Frames(ctx, key, from, limit)
	if err != nil || len(page) > 0 {
		return page, err
	}
	run := subject.Run{Tenant: key.Tenant, RunID: key.RunID}
	if s.cold == nil {
		return nil, s.nowhere(ctx, run)
	}
	frames, err := cold.Frames(ctx, s.cold, run, from, limit, store.PageBytes)
	switch {
	case errors.Is(err, cold.ErrNotFound):
		return nil, s.nowhere(ctx, run)
	case errors.Is(err, cold.ErrUnavailable):
		return nil, fmt.Errorf("%w: %w", runlog.ErrUnavailable, err)
	case err != nil:
		s.unreadable(run, err)
		return nil, err
	}
	events, size := 0, 0
	for _, f := range frames {
		for _, part := range project.Stored(f) {
			if part.Last < from {
				continue
			}
			if events >= limit || size >= store.PageBytes {
				return page, nil
			}
			page = append(page, part)
			events, size = events+part.Last+1-max(part.First, from, 0), size+len(part.Body)
		}
	}
	return page, nil
}

// nowhere returns why neither store has frames of a run: it was erased, or its object is lost. It is nil
// if the run has none so far, or the store is being filled.
func (s withCold) nowhere(ctx context.Context, run subject.Run) error {
	_, err := s.log.Last(ctx, run)
	if errors.Is(err, runlog.ErrErased) || errors.Is(err, runlog.ErrSealed) || errors.Is(err, cold.ErrNotFound) {
		return err
	}
	return nil
}
