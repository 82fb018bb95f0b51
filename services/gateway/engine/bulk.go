package engine

import (
	"context"
	"slices"
	"strconv"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
)

// retryOperation is the operation name of idempotency keys of retries.
const retryOperation = "POST /v1/runs:bulk-retry"

// BulkDeleteRuns erases up to 100 runs independently.
func (s *Service) BulkDeleteRuns(ctx context.Context, req *hostv1.BulkDeleteRunsRequest) (*hostv1.BulkDeleteRunsResponse, error) {
	results, err := each(ctx, req.GetRunIds(), func(id string) (string, error) {
		_, err := s.DeleteRun(ctx, &hostv1.DeleteRunRequest{RunId: id})
		return "", err
	})
	return &hostv1.BulkDeleteRunsResponse{Results: results}, err
}

// BulkRetryRuns starts up to 100 runs again. A repeated request finds the runs that the first one has
// started, because their ids follow from the key.
func (s *Service) BulkRetryRuns(ctx context.Context, req *hostv1.BulkRetryRunsRequest) (*hostv1.BulkRetryRunsResponse, error) {
	key, keyed := metaValue(ctx, MetaIdempotencyKey)
	tenant := auth.From(ctx).Tenant
	results, err := each(ctx, req.GetRunIds(), func(id string) (string, error) {
		if err := checkRunID(id); err != nil {
			return "", err
		}
		begin := int32(0)
		fork := &openwopv1.ForkRunRequest{RunId: id, Mode: string(wire.ForkBranch), FromSeq: &begin}
		newRunID, digest := "run_"+newID(), ""
		if keyed {
			newRunID, digest = s.derivedID(retryOperation, tenant, key+" "+id), retryOperation
		}
		res, err := s.fork(ctx, fork, overlay{}, nil, newRunID, digest)
		return res.GetRunId(), err
	})
	return &hostv1.BulkRetryRunsResponse{Results: results}, err
}

// BulkAnnotateRuns records the caller's annotation of up to 100 runs.
func (s *Service) BulkAnnotateRuns(ctx context.Context, req *hostv1.BulkAnnotateRunsRequest) (*hostv1.BulkAnnotateRunsResponse, error) {
	one := func(id string) *hostv1.CreateAnnotationRequest {
		return &hostv1.CreateAnnotationRequest{RunId: id, Signal: req.GetSignal(), Note: req.Note}
	}
	if s.deps.Annotations == nil {
		return nil, errNoAnnotations()
	}
	if err := checkAnnotation(one("")); err != nil {
		return nil, err
	}
	results, err := each(ctx, req.GetRunIds(), func(id string) (string, error) {
		_, err := s.CreateAnnotation(ctx, one(id))
		return "", err
	})
	return &hostv1.BulkAnnotateRunsResponse{Results: results}, err
}

// each calls act with every id. A failure is the result of its run; the others continue. A caller that
// has gone gets no further runs changed.
func each(ctx context.Context, ids []string, act func(id string) (newRunID string, err error)) (results []*hostv1.BulkRunResult, err error) {
	if err := checkBulkIDs(ids); err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		res := &hostv1.BulkRunResult{RunId: id}
		newRunID, err := act(id)
		if err == nil {
			res.Ok, res.NewRunId = true, stringOrNil(newRunID)
		} else {
			res.Error = bulkError(err)
		}
		results = append(results, res)
	}
	return results, nil
}

func bulkError(err error) *hostv1.BulkRunError {
	e, ok := fault.As(err)
	if !ok {
		e = fault.New(fault.InternalError, "something failed inside the host; try again")
	}
	return &hostv1.BulkRunError{Code: string(e.Code), Message: e.Message}
}

func checkBulkIDs(ids []string) error {
	if err := checkBulk(&openwopv1.BulkCancelRunsRequest{RunIds: ids}); err != nil {
		return err
	}
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			return fault.InvalidBody("/runIds/"+strconv.Itoa(i), "duplicate; name each run once")
		}
	}
	return nil
}
