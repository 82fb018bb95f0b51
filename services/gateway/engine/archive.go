package engine

import (
	"context"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	dispatcherv1 "waybill.dev/waybill/proto/gen/go/waybill/dispatcher/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
)

// GetRunArchive exports the archive of a run.
func (s *Service) GetRunArchive(ctx context.Context, req *hostv1.GetRunArchiveRequest) (*hostv1.GetRunArchiveResponse, error) {
	if err := checkRunID(req.GetRunId()); err != nil {
		return nil, err
	}
	made, err := s.deps.Dispatcher.ArchiveRun(ctx, &dispatcherv1.ArchiveRunRequest{Tenant: auth.From(ctx).Tenant, RunId: req.GetRunId()})
	if err != nil {
		return nil, err
	}
	if err := s.recordAudit(ctx, "archive.exported", "runs/"+req.GetRunId(), map[string]any{"sha256": made.GetSha256()}); err != nil {
		return nil, err
	}
	setMeta(ctx, MetaCache, "no-store")
	return &hostv1.GetRunArchiveResponse{Archive: &openwopv1.JsonDocument{Json: made.GetDocument()}}, nil
}

// ArchiveRuns writes runs to the archive of the host. A run that cannot be archived does not stop the
// others. A repeated request finds what the first one has archived.
func (s *Service) ArchiveRuns(ctx context.Context, req *hostv1.ArchiveRunsRequest) (*hostv1.ArchiveRunsResponse, error) {
	ids, next, err := s.selectEnded(ctx, req)
	if err != nil {
		return nil, err
	}
	out := &hostv1.ArchiveRunsResponse{NextCursor: stringOrNil(next)}
	for _, id := range ids {
		err = s.archiveRun(ctx, id, req.GetDryRun())
		switch code := fault.CodeOf(err); {
		case err == nil:
			out.Archived++
		case code == fault.RunNotFound && len(req.GetRunIds()) == 0: // it was erased after it was listed
		case code == fault.CapabilityNotProvided, ctx.Err() != nil:
			return nil, err
		default:
			out.Refused = append(out.Refused, notArchived(id, err))
		}
	}
	return out, nil
}

// selectEnded returns the ids of the runs that a request selects, and the cursor of the next page.
func (s *Service) selectEnded(ctx context.Context, req *hostv1.ArchiveRunsRequest) (ids []string, next string, err error) {
	if ids := req.GetRunIds(); len(ids) > 0 {
		if req.Filter != nil || req.EndedBefore != nil || req.GetAll() || req.Limit != nil || req.Cursor != nil {
			return nil, "", fault.InvalidBody("/runIds", "not together with filter, endedBefore, all, limit or cursor")
		}
		return ids, "", checkBulkIDs(ids)
	}
	list, before, err := s.checkErase(ctx, &hostv1.EraseRunsRequest{
		Filter: req.Filter, EndedBefore: req.EndedBefore, All: req.All, Limit: req.Limit, Cursor: req.Cursor,
	})
	if err != nil {
		return nil, "", err
	}
	page, err := s.deps.EventLog.ListRuns(ctx, list)
	switch {
	case fault.CodeOf(err) == fault.ValidationError: // all but the cursor is valid
		return nil, "", fault.InvalidBody("/cursor", "not a cursor of this host")
	case err != nil:
		return nil, "", err
	}
	for _, r := range page.GetRuns() {
		if wire.Status(r.GetStatus()).Terminal() && (before.IsZero() || endedBefore(r, before)) {
			ids = append(ids, r.GetRunId())
		}
	}
	return ids, page.GetNextCursor(), nil
}

// archiveRun writes a run to the archive of the host, or only checks that it could.
func (s *Service) archiveRun(ctx context.Context, runID string, dryRun bool) error {
	if err := checkRunID(runID); err != nil {
		return err
	}
	req := &dispatcherv1.ArchiveRunRequest{Tenant: auth.From(ctx).Tenant, RunId: runID, Store: true, DryRun: dryRun}
	made, err := s.deps.Dispatcher.ArchiveRun(ctx, req)
	if err != nil || dryRun {
		return err
	}
	return s.recordAudit(ctx, "run.archived", "runs/"+runID, map[string]any{
		"name": made.GetName(), "sha256": made.GetSha256(), "created": made.GetCreated(),
	})
}

// notArchived describes a run that was not archived.
func notArchived(runID string, err error) *hostv1.RunNotArchived {
	f, ok := fault.As(err)
	if !ok { // its text is not for callers
		f = fault.New(fault.InternalError, "the run was not archived; try again")
	}
	return &hostv1.RunNotArchived{RunId: runID, Error: string(f.Code), Message: f.Message}
}
