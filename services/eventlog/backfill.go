package eventlog

import (
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/retry"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
)

// Pace of the completion of rows.
const (
	backfillRows = 32
	// backfillRest is the time without work after each step, as a multiple of the step's.
	backfillRest = 3
)

// backfillRetry is for a store that fails.
var backfillRetry = retry.Policy{Base: time.Second, Max: time.Minute}

// backfill completes the rows that an older version has written, in the background. Rows that this
// version writes are complete, so once no other row is left, none follows.
func (s *Service) backfill(ctx context.Context) {
	total := 0
	for waits := range backfillRetry.Tries(ctx) {
		n, err := s.backfillAll(ctx)
		total += n
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			if total > 0 {
				s.slog.Info("rows of the read model completed", "runs", total)
			}
			return
		case errors.Is(err, store.ErrDamaged):
			s.ingest.Rebuild(err)
		}
		s.slog.Warn("rows of the read model are incomplete; trying again", "error", err, "backoff", waits.Next())
	}
}

func (s *Service) backfillAll(ctx context.Context) (total int, err error) {
	for {
		began := s.clock()
		n, err := s.backfillStep(ctx)
		total += n
		if err != nil || n == 0 || !lifecycle.Wait(ctx, backfillRest*s.clock().Sub(began)) {
			return total, err
		}
	}
}

// backfillStep completes some rows and returns their number.
func (s *Service) backfillStep(ctx context.Context) (int, error) {
	rows, err := s.store.WithoutFacts(ctx, backfillRows)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	var marks []store.Mark
	for i := range rows {
		run, err := project.Load(ctx, s.store, rows[i])
		if errors.Is(err, runlog.ErrErased) || errors.Is(err, store.ErrDamaged) && s.erasedMeanwhile(rows[i].Key) {
			continue // FillFacts ignores it
		}
		if errors.Is(err, frame.ErrDamaged) || errors.Is(err, runlog.ErrSealed) { // what the row has is all there is
			rows[i].Facts.Known = true
			continue
		}
		if err != nil {
			return 0, err
		}
		found, _ := run.Found()
		marks = append(marks, found...)
		rows[i].Facts = run.Row().Facts
	}
	return len(rows), s.store.FillFacts(ctx, rows, marks)
}
