package engine

import (
	"context"
	"encoding/json"
	"fmt"

	openwopv1 "waybill.dev/waybill/proto/gen/go/openwop/v1"
	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/auth"
	"waybill.dev/waybill/services/gateway/runview"
)

// DiffRuns returns the difference of two runs of the tenant (OpenWOP host contract §2.9).
func (s *Service) DiffRuns(ctx context.Context, req *hostv1.DiffRunsRequest) (*hostv1.DiffRunsResponse, error) {
	if req.GetAgainst() == "" {
		return nil, fault.InvalidQuery("against", "required: the id of the run to compare with")
	}
	a, err := s.logOf(ctx, req.GetRunId())
	if err != nil {
		return nil, err
	}
	b, err := s.logOf(ctx, req.GetAgainst())
	if err != nil {
		return nil, err
	}
	// Compare both logs only up to the end of an unfinished one, which may still append the
	// same events.
	for _, r := range []*runLog{a, b} {
		if !r.ended() {
			a.until, b.until = min(a.until, r.until), min(b.until, r.until)
		}
	}
	fromA, err := a.ancestors(ctx)
	if err != nil {
		return nil, err
	}
	fromB, err := b.ancestors(ctx)
	if err != nil {
		return nil, err
	}
	c := runview.NewComparer(req.GetRunId(), req.GetAgainst()).SetAncestors(fromA, fromB)
	for more := true; more; {
		x, err := a.next(ctx)
		if err != nil {
			return nil, err
		}
		y, err := b.next(ctx)
		if err != nil {
			return nil, err
		}
		more = (x != nil || y != nil) && c.Add(x, y)
	}
	doc, err := json.Marshal(c.Report(a.snapshot, b.snapshot, !a.ended() || !b.ended()))
	if err != nil {
		return nil, fmt.Errorf("render run diff: %w", err)
	}
	return &hostv1.DiffRunsResponse{Diff: &openwopv1.JsonDocument{Json: doc}}, nil
}

// runLog reads a run's events one by one, up to its snapshot.
type runLog struct {
	client   eventlogv1.EventLogClient
	tenant   string
	id       string
	status   wire.Status
	snapshot []byte
	// read is the number of events read; until is where reading stops.
	read, until int32
	page        []*eventlogv1.Event
}

func (s *Service) logOf(ctx context.Context, id string) (*runLog, error) {
	if err := checkRunID(id); err != nil {
		return nil, err
	}
	r := &runLog{client: s.deps.EventLog, tenant: auth.From(ctx).Tenant, id: id}
	res, err := r.client.GetRun(ctx, &eventlogv1.GetRunRequest{Tenant: r.tenant, RunId: id})
	if err != nil {
		return nil, err
	}
	r.status, r.snapshot, r.until = wire.Status(res.GetStatus()), res.GetSnapshot(), res.GetLastSequence()+1
	return r, nil
}

// maxAncestors limits how many sources of a fork are followed.
const maxAncestors = 32

// ancestors returns the runs that this run was forked from, nearest first, as far as they
// still exist.
func (r *runLog) ancestors(ctx context.Context) ([]string, error) {
	var ids []string
	for source := sourceOf(r.snapshot); source != "" && len(ids) < maxAncestors; {
		ids = append(ids, source)
		res, err := r.client.GetRun(ctx, &eventlogv1.GetRunRequest{Tenant: r.tenant, RunId: source})
		if fault.CodeOf(err) == fault.RunNotFound || fault.CodeOf(err) == fault.RunExpired {
			break
		}
		if err != nil {
			return nil, err
		}
		source = sourceOf(res.GetSnapshot())
	}
	return ids, nil
}

// sourceOf returns the run that a snapshot's run was forked from; empty if none.
func sourceOf(snapshot []byte) string {
	var s struct {
		SourceRunID string `json:"sourceRunId"`
	}
	_ = json.Unmarshal(snapshot, &s) // an unreadable snapshot has no source
	return s.SourceRunID
}

func (r *runLog) ended() bool { return r.status.Terminal() }

// next returns the next event's document; nil after the last.
func (r *runLog) next(ctx context.Context) ([]byte, error) {
	if r.read >= r.until {
		return nil, nil
	}
	if len(r.page) == 0 {
		res, err := r.client.ReadEvents(ctx, &eventlogv1.ReadEventsRequest{
			Tenant: r.tenant,
			RunId:  r.id,
			After:  r.read - 1,
			Limit:  defaultEvents,
		})
		if err != nil {
			return nil, err
		}
		if r.page = res.GetEvents(); len(r.page) == 0 {
			return nil, fmt.Errorf("read run %s: event %d is missing", r.id, r.read)
		}
	}
	e := r.page[0]
	r.page, r.read = r.page[1:], r.read+1
	return e.GetDocument(), nil
}
