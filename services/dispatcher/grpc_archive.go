package dispatcher

import (
	"context"
	"errors"
	"fmt"

	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/services/dispatcher/clients"
	"waybill.dev/waybill/services/dispatcher/retention"
)

// newArchiver returns the archiver of runs.
func (s *Service) newArchiver() *retention.Archiver {
	d := s.deps
	return retention.NewArchiver(d.Log, clients.Bundles{EventLog: d.EventLog, Redactor: s.redactor}, d.Archive, d.Logger)
}

// ArchiveRun returns the archive of a run, writes it to the archive of the host, or checks that it could.
func (s *Service) ArchiveRun(ctx context.Context, req *dispatcherv1.ArchiveRunRequest) (*dispatcherv1.ArchiveRunResponse, error) {
	run := subject.Run{Tenant: req.GetTenant(), RunID: req.GetRunId()}
	do := s.archiver.Build
	switch {
	case req.GetDryRun():
		do = s.archiver.Check
	case req.GetStore():
		do = s.archiver.Store
	}
	made, err := do(ctx, run)
	if err != nil {
		return nil, s.logFault(err)
	}
	return &dispatcherv1.ArchiveRunResponse{Document: made.Document, Name: made.Name, Sha256: made.SHA256, Created: made.Created}, nil
}

// Prepare archives a run before it is erased, if the host has an archive. A run with a hold is not
// erased, so it is not archived.
func (e expirer) Prepare(ctx context.Context, run subject.Run) error {
	if !e.archiver.HasTarget() {
		return nil
	}
	if err := e.holds.Check(ctx, run); err != nil {
		return err
	}
	_, err := e.archiver.Store(ctx, run)
	switch code := fault.CodeOf(err); {
	case err == nil || code == fault.RunNotFound || code == fault.Conflict:
		return err
	case errors.Is(err, retention.ErrArchiveUnavailable):
		return fmt.Errorf("%w: %w", retention.ErrAway, err)
	default: // it is too large, or its log is damaged
		return fmt.Errorf("%w: %w", retention.ErrArchive, err)
	}
}
