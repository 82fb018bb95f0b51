package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/eventlog/store"
)

// retryAfter is the retry hint when the read model is behind.
const retryAfter = time.Second

// current returns a run's row including everything that was acknowledged before the call. A run of
// another tenant is not found, because the tenant is part of the key. It asks the log for a position
// only, whatever the size of the run.
func (s *Service) current(ctx context.Context, key store.Key) (store.Run, error) {
	if !subject.Token(key.Tenant) || !subject.Token(key.RunID) {
		return store.Run{}, runNotFound(key)
	}
	applied := s.ingest.Applied()
	row, err := s.store.Run(ctx, key)
	switch {
	case err == nil && row.Status.Terminal():
		return row, nil // nothing follows a terminal event, so the log need not be read
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return store.Run{}, s.failure(key, err)
	}
	moved, endErr := s.catchUp(ctx, applied)
	if endErr != nil {
		return store.Run{}, endErr
	}
	if moved {
		row, err = s.store.Run(ctx, key)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.Run{}, s.missing(ctx, key)
	case err != nil:
		return store.Run{}, s.failure(key, err)
	}
	if err := s.lostRun(ctx, row); err != nil {
		return store.Run{}, err
	}
	return row, damage(row)
}

// lostRun returns the error for a run in the store that the log has lost, or whose last frames it has
// lost; nil if there is no sign of that. It asks only a log that is known to have lost frames. A log
// that ends before the row's position may be that of a leader that does not know yet that it was
// replaced.
func (s *Service) lostRun(ctx context.Context, row store.Run) error {
	if log, ok := s.log.(interface{ Lost() uint64 }); !ok || log.Lost() == 0 {
		return nil
	}
	last, err := s.log.Last(ctx, subject.Run{Tenant: row.Tenant, RunID: row.RunID})
	gone := errors.Is(err, runlog.ErrNotFound)
	if !gone && (err != nil || last.Pos >= row.Pos) {
		return nil
	}
	end, err := s.log.End(ctx)
	switch {
	case err == nil && end >= row.Pos:
		s.slog.Error("the last frame of a run is lost", "tenant", row.Tenant, "run_id", row.RunID, "stream", subject.Stream, "sequence", row.Pos)
		return damaged(row.Key).With("lastSequence", row.Head).Wrap(fmt.Errorf("the log has no frame at %d", row.Pos))
	case gone:
		return unavailable("the run log ends before what was read of it").Wrap(err)
	}
	return nil
}

// row reads a row that is known to exist in the log.
func (s *Service) row(ctx context.Context, key store.Key) (store.Run, error) {
	row, err := s.store.Run(ctx, key)
	if err != nil {
		return store.Run{}, s.failure(key, err)
	}
	return row, damage(row)
}

// missing returns the error for a run that the read model does not have. A run that the log has is not
// reported as unknown.
func (s *Service) missing(ctx context.Context, key store.Key) error {
	_, err := s.log.Last(ctx, subject.Run{Tenant: key.Tenant, RunID: key.RunID})
	if err == nil {
		err = store.ErrNotFound
	}
	return s.failure(key, err)
}

// catchUp waits until the store has all that was acknowledged before the call. moved is false if it had
// all of it at a position that was read before.
func (s *Service) catchUp(ctx context.Context, applied uint64) (moved bool, err error) {
	end, err := s.ends.get(ctx)
	if err != nil {
		return false, s.failure(store.Key{}, err)
	}
	if end <= applied {
		return false, nil
	}
	return true, s.await(ctx, end)
}

// await waits up to the limit until the store has reached a position.
func (s *Service) await(ctx context.Context, pos uint64) error {
	bounded, cancel := context.WithTimeout(ctx, s.cfg.FreshTimeout)
	defer cancel()
	err := s.ingest.Wait(bounded, pos)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return unavailable("the read model is behind the run log").Wrap(err)
}

// failure converts an error of the log or the store to a fault.
func (s *Service) failure(key store.Key, err error) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, runlog.ErrUnavailable):
		return err
	case errors.Is(err, runlog.ErrNotFound):
		return runNotFound(key)
	case errors.Is(err, runlog.ErrUnavailable):
		return unavailable("the run log cannot be reached").Wrap(err)
	case errors.Is(err, frame.ErrDamaged), errors.Is(err, runlog.ErrSealed): // a host without its cold store
		return damaged(key).Wrap(err)
	case errors.Is(err, store.ErrDamaged) && s.erasedMeanwhile(key):
		return runNotFound(key)
	case errors.Is(err, store.ErrDamaged):
		s.ingest.Rebuild(err)
		return unavailable("the read model is being rebuilt").Wrap(err)
	default:
		// This includes a run that is in the log but not yet in the store.
		s.slog.Warn("read failed", "run_id", key.RunID, "error", err)
		return unavailable("the read model cannot answer").Wrap(err)
	}
}

// leavesOut reports whether a list omits a run that failed with an error of failure. It omits runs that
// were erased after they were listed, and runs whose log is damaged. Any other error is temporary, so
// the list returns it and the caller repeats the request.
func (s *Service) leavesOut(key store.Key, err error) bool {
	switch fault.CodeOf(err) {
	case fault.RunNotFound:
		return true
	case fault.LogDamaged:
		s.slog.Warn("a list leaves out a run that cannot be read", "tenant", key.Tenant, "run_id", key.RunID, "error", err)
		return true
	default:
		return false
	}
}

// erasedMeanwhile reports whether a run that was read has been erased: its row is gone, and its frames
// are no sign of damage. It is for a rare error, whose context may have ended.
func (s *Service) erasedMeanwhile(key store.Key) bool {
	if key == (store.Key{}) {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.FreshTimeout)
	defer cancel()
	if _, err := s.store.Run(ctx, key); !errors.Is(err, store.ErrNotFound) {
		return false
	}
	_, err := s.log.Last(ctx, subject.Run{Tenant: key.Tenant, RunID: key.RunID})
	return errors.Is(err, runlog.ErrErased)
}

func unavailable(what string) *fault.Error {
	return fault.New(fault.ServiceUnavailable, "%s; try again", what).After(retryAfter)
}

func runNotFound(key store.Key) *fault.Error {
	return fault.New(fault.RunNotFound, "no run of this id").With("runId", key.RunID)
}

// damage returns the error for a run with a damaged log. The readable part could be mistaken for
// the whole, so nothing is served.
func damage(row store.Run) error {
	if row.Damage == "" {
		return nil
	}
	return damaged(row.Key).With("lastSequence", row.Head).Wrap(errors.New(row.Damage))
}

func damaged(key store.Key) *fault.Error { return fault.Damaged().With("runId", key.RunID) }
