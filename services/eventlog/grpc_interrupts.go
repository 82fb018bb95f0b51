package eventlog

import (
	"context"
	"encoding/json"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/services/eventlog/store"
)

// ListInterrupts lists the open questions of a tenant's runs, or those answered on a day, by run,
// newest first. The questions of a run are never split across pages, so a page may exceed its limit.
// A page of answered questions also ends when it has read much.
// The list includes every question asked, or answered, before the call.
func (s *Service) ListInterrupts(ctx context.Context, req *eventlogv1.ListInterruptsRequest) (*eventlogv1.ListInterruptsResponse, error) {
	q := store.Query{
		Tenant:     req.GetTenant(),
		WorkflowID: req.GetWorkflowId(),
		Asking:     req.GetAnsweredOn() == "",
		AnsweredOn: req.GetAnsweredOn(),
		Limit:      pageSize(req.GetLimit(), defaultRuns, maxRuns),
	}
	err := checkDay(req.GetAnsweredOn())
	if err != nil {
		return nil, err
	}
	if q.After, err = after(store.Query{}, req.GetCursor()); err != nil {
		return nil, err
	}
	if err := s.caughtUp(ctx); err != nil {
		return nil, err
	}
	rows, next, err := s.rows(ctx, q)
	if err != nil {
		return nil, err
	}
	resp := &eventlogv1.ListInterruptsResponse{NextCursor: next}
	size := 0
	for i, r := range rows {
		n := 0
		if day := req.GetAnsweredOn(); day != "" {
			n, err = s.answeredIn(ctx, r, day, req.GetKind(), resp)
		} else {
			err = s.askedBy(ctx, r, req.GetKind(), resp)
		}
		if err != nil && !s.leavesOut(r.Key, err) {
			return nil, err
		}
		size += n
		if (len(resp.GetInterrupts()) >= q.Limit || size > answerBytes) && i < len(rows)-1 {
			resp.NextCursor = encodeCursor(store.Query{}, store.PlaceOf(&r, store.SortCreated))
			break
		}
	}
	return resp, nil
}

// askedBy adds the open questions of one run; none if they were answered in the meantime.
func (s *Service) askedBy(ctx context.Context, r store.Run, kind string, to *eventlogv1.ListInterruptsResponse) error {
	asked, status, err := s.views.asked(ctx, r)
	if err != nil {
		return s.failure(r.Key, err)
	}
	for _, i := range asked {
		if kind != "" && kind != string(i.Kind) {
			continue
		}
		doc, err := json.Marshal(i)
		if err != nil {
			return s.failure(r.Key, err)
		}
		to.Interrupts = append(to.Interrupts, &eventlogv1.OpenInterrupt{
			RunId:      r.RunID,
			WorkflowId: r.WorkflowID,
			Status:     string(status),
			Interrupt:  doc,
		})
	}
	return nil
}
