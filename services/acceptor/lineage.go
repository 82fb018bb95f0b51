package acceptor

import (
	"context"
	"errors"
	"time"

	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
)

// maxLineage limits the forks and parents between a run and the first of its family.
const maxLineage = 256

// related reports whether two runs of a tenant are of one family: a fork copies the events of its source,
// and a child exchanges values with its parent, so their values name assets of each other.
func (s *Service) related(ctx context.Context, tenant, a, b string) (bool, error) {
	first, err := s.firstOfFamily(ctx, tenant, a)
	if err != nil {
		return false, err
	}
	other, err := s.firstOfFamily(ctx, tenant, b)
	return first == other, err
}

// firstOfFamily follows a run's forks and parents to the first run that the log still has.
func (s *Service) firstOfFamily(ctx context.Context, tenant, runID string) (string, error) {
	for range maxLineage {
		f, err := s.runLog.First(ctx, subject.Run{Tenant: tenant, RunID: runID})
		if errors.Is(err, runlog.ErrNotFound) {
			return runID, nil
		}
		if err != nil {
			return "", fault.New(fault.ServiceUnavailable, "the run log is unreachable; try again").After(time.Second).Wrap(err)
		}
		rec, err := f.Record()
		switch {
		case err != nil:
			return "", err
		case rec.Fork != nil:
			runID = rec.Fork.SourceRunID
		case rec.Parent != nil:
			runID = rec.Parent.RunID
		default:
			return runID, nil
		}
	}
	return runID, nil
}
