package eventlog

import (
	"context"
	"strings"
	"time"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/project"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/words"
)

// Limits of a page of runs (OpenWOP host contract §2.2, lists).
const (
	defaultRuns = 50
	maxRuns     = 200
)

// GetRun returns a run's snapshot (OpenWOP host contract §3.2).
func (s *Service) GetRun(ctx context.Context, req *eventlogv1.GetRunRequest) (*eventlogv1.GetRunResponse, error) {
	key := store.Key{Tenant: req.GetTenant(), RunID: req.GetRunId()}
	if snap, ok := s.views.final(key); ok {
		return runResponse(snap), nil
	}
	row, err := s.current(ctx, key)
	if err != nil {
		return nil, err
	}
	snap, err := s.views.at(ctx, row)
	if err != nil {
		return nil, s.failure(key, err)
	}
	return runResponse(snap), nil
}

func runResponse(snap snapshot) *eventlogv1.GetRunResponse {
	return &eventlogv1.GetRunResponse{
		Snapshot: snap.doc, LastSequence: int32(snap.head), Status: string(snap.status), //nolint:gosec // G115: sequences are far below 2^31
		Waits: wait(snap.waits), LastEventAt: snap.heard, Owner: owner(snap.owner),
		WorkflowVersion: snap.version, WorkflowDigest: snap.digest,
	}
}

// ListRuns lists a tenant's runs. The list includes every run whose creation was acknowledged before
// the call.
func (s *Service) ListRuns(ctx context.Context, req *eventlogv1.ListRunsRequest) (*eventlogv1.ListRunsResponse, error) {
	q, err := s.listQuery(req)
	if err != nil {
		return nil, err
	}
	if err := s.caughtUp(ctx); err != nil {
		return nil, err
	}
	rows, next, err := s.rows(ctx, q)
	if err != nil {
		return nil, err
	}
	resp := &eventlogv1.ListRunsResponse{NextCursor: next}
	for _, r := range rows {
		resp.Runs = append(resp.Runs, summary(r))
	}
	return resp, nil
}

// caughtUp waits until the store has everything that was acknowledged before.
func (s *Service) caughtUp(ctx context.Context) error {
	_, err := s.catchUp(ctx, 0)
	return err
}

// rows returns a page and the cursor of the next; empty means no more pages.
func (s *Service) rows(ctx context.Context, q store.Query) (rows []store.Run, next string, err error) {
	limit := q.Limit
	q.Limit++ // one more shows whether another page follows
	bounded, cancel := s.searching(ctx, q)
	defer cancel()
	if rows, err = s.store.List(bounded, q); err != nil {
		return nil, "", s.searchFailure(bounded, err)
	}
	if len(rows) > limit {
		rows = rows[:limit]
		next = encodeCursor(q, store.PlaceOf(&rows[limit-1], q.Sort))
	}
	return rows, next, nil
}

func (s *Service) listQuery(req *eventlogv1.ListRunsRequest) (store.Query, error) {
	q := store.Query{
		Tenant: req.GetTenant(), Status: wire.Status(req.GetStatus()), WorkflowID: req.GetWorkflowId(), Tag: req.GetTag(),
		ErrorCode: req.GetErrorCode(), Kind: req.GetKind(), Provider: req.GetProvider(), Since: req.GetSince(),
		Model: req.GetModel(), Until: req.GetUntil(), MinCost: req.MinCost, WaitingSince: req.GetWaitingSince(),
		Sort: store.Sort(req.GetSort()), Ascending: req.GetAscending(),
		Limit: pageSize(req.GetLimit(), defaultRuns, maxRuns),
	}
	for name, at := range map[string]*string{"since": &q.Since, "until": &q.Until, "waitingSince": &q.WaitingSince} {
		if err := instant(name, at); err != nil {
			return q, err
		}
	}
	var err error
	if q.Words, err = s.words(req); err != nil {
		return q, err
	}
	if err := q.Validate(); err != nil {
		return q, err
	}
	q.After, err = after(q, req.GetCursor())
	return q, err
}

// words returns the words that runs must have, separated by spaces.
func (s *Service) words(req *eventlogv1.ListRunsRequest) (string, error) {
	if req.GetText() == "" {
		return "", nil
	}
	asked, err := words.Asked(req.GetText())
	switch {
	case err != nil:
		return "", fault.InvalidQuery("filter", "text: %s", err.Error())
	case !s.cfg.Words:
		return "", fault.InvalidQuery("filter", "text: this host does not index the contents of runs; its operator can start it with --index-payloads")
	}
	return strings.Join(asked, " "), nil
}

// instant converts a time to the layout of the rows; empty stays empty.
func instant(name string, at *string) error {
	if *at == "" {
		return nil
	}
	t, err := time.Parse(time.RFC3339, *at)
	if err != nil {
		return fault.InvalidQuery(name, "want a time of RFC 3339")
	}
	*at = wire.FormatTime(t)
	return nil
}

// after returns the position of a cursor; an empty cursor is the start.
func after(q store.Query, cursor string) (store.Place, error) {
	if cursor == "" {
		return store.Place{}, nil
	}
	p, ok := decodeCursor(q, cursor)
	if !ok {
		return p, fault.InvalidQuery("cursor", "not a cursor that a list in this order has returned")
	}
	return p, nil
}

// pageSize applies the limits to a requested page size; 0 and less mean the default.
func pageSize(asked int32, standard, most int) int {
	if asked <= 0 {
		return standard
	}
	return min(int(asked), most)
}

func summary(r store.Run) *eventlogv1.RunSummary {
	return &eventlogv1.RunSummary{
		RunId: r.RunID, WorkflowId: r.WorkflowID, Status: string(r.Status), CreatedAt: r.CreatedAt,
		StartedAt: r.StartedAt, CompletedAt: r.CompletedAt, Tags: r.Tags, ErrorCode: r.ErrorCode,
		LastEventAt: r.LastEventAt, LastSequence: int32(r.Head), Waits: wait(project.ParseWaits(r.Waits)), Owner: owner(r.Owner), //nolint:gosec // G115: sequences are far below 2^31
		Facts: facts(&r.Facts),
	}
}

// wait returns what a run waits for; nil if nothing.
func wait(w *project.Waits) *eventlogv1.RunWait {
	if w == nil {
		return nil
	}
	return &eventlogv1.RunWait{
		For: w.For, NodeId: w.NodeID, Attempt: int32(w.Attempt), Since: w.Since, DueAt: w.DueAt, Questions: int32(w.Questions), HeldBy: w.HeldBy, //nolint:gosec // G115: small numbers
	}
}
