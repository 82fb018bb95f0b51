package eventlog

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/tally"
)

// Limits of statistics. maxSteps limits the points of an answer. It reads a row for each point and
// workflow, up to maxRead bytes.
const (
	maxStatisticsSpan   = 366 * 24 * time.Hour
	maxSteps            = 170
	maxTalliedWorkflows = 100
)

// GetStatistics adds up the tallies of a tenant's workflows.
func (s *Service) GetStatistics(ctx context.Context, req *eventlogv1.GetStatisticsRequest) (*eventlogv1.GetStatisticsResponse, error) {
	since, until, err := span(req.GetSince(), req.GetUntil())
	if err != nil {
		return nil, err
	}
	if err := s.caughtUp(ctx); err != nil {
		return nil, err
	}
	var sum *summer
	err = s.widening(grain(since, until, s.clock()), func(g tally.Grain, limit int) error {
		q := tallyQuery(req.GetTenant(), req.GetWorkflowId(), since, until, g)
		q.MaxBytes = limit
		sum = newSummer(q)
		return s.store.Tallies(ctx, q, sum.add)
	})
	if err != nil {
		return nil, err
	}
	return &eventlogv1.GetStatisticsResponse{Statistics: sum.response()}, nil
}

// span parses the ends of a span of time.
func span(from, to string) (since, until time.Time, err error) {
	if since, err = time.Parse(time.RFC3339, from); err != nil {
		return since, until, fault.InvalidQuery("since", "want a time of RFC 3339")
	}
	if until, err = time.Parse(time.RFC3339, to); err != nil {
		return since, until, fault.InvalidQuery("until", "want a time of RFC 3339")
	}
	if span := until.Sub(since); span <= 0 || span > maxStatisticsSpan {
		return since, until, fault.InvalidQuery("since", "want a time up to 366 days before until")
	}
	return since, until, nil
}

// tallyQuery selects the buckets of a span, extended to whole ones.
func tallyQuery(tenant, workflowID string, since, until time.Time, g tally.Grain) store.TallyQuery {
	return store.TallyQuery{
		Tenant: tenant, Grain: g, WorkflowID: workflowID,
		From: g.Start(since), Until: g.Start(until.Add(-time.Nanosecond)) + int64(g),
	}
}

// widening calls read with a grain and the limit of its bytes, and with wider grains while there are
// more bytes.
func (s *Service) widening(from tally.Grain, read func(g tally.Grain, limit int) error) error {
	for _, g := range tally.Grains {
		if g < from {
			continue
		}
		limit := maxRead
		if g == tally.Daily {
			limit = maxDaysRead
		}
		err := read(g, limit)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, store.ErrTooLarge):
			return s.failure(store.Key{}, err)
		}
	}
	return fault.InvalidQuery("since", "the span has too many counts: choose a shorter one, or one workflow or tenant")
}

// grain returns the narrowest grain whose buckets are still kept for the whole span, and are not too
// many.
func grain(since, until, now time.Time) tally.Grain {
	for _, g := range tally.Grains {
		width := time.Duration(g) * time.Second
		keeps := time.Duration(g.Keeps()) * time.Second
		if until.Sub(since) <= maxSteps*width && (keeps == 0 || now.Sub(since) <= keeps) {
			return g
		}
	}
	return tally.Daily
}

// summer adds up tallies, which come ordered by time.
type summer struct {
	out       *hostv1.GetStatisticsResponse
	total     tally.Tally
	workflows workflowSums

	at       int64 // of the point
	point    totals
	refusals tally.Tally // of the point
	begun    bool
}

func newSummer(q store.TallyQuery) *summer {
	return &summer{workflows: newWorkflowSums(), out: &hostv1.GetStatisticsResponse{
		Since: unixTime(q.From), Until: unixTime(q.Until), StepSeconds: int32(q.Grain), //nolint:gosec // G115: at most a day
	}}
}

func (s *summer) add(t *store.Tallied) error {
	if s.begun && t.At != s.at {
		s.endPoint()
	}
	s.at, s.begun = t.At, true
	s.point.add(&t.Tally)
	s.refusals.MergeRefusals(&t.Tally)
	s.workflows.add(t, maxWorkflowBytes)
	s.total.MergeModels(&t.Tally)
	s.total.MergeErrors(&t.Tally)
	return nil
}

func (s *summer) endPoint() {
	s.total.Runs.Merge(&s.point.runs)
	s.total.MergeRefusals(&s.refusals)
	s.out.Points = append(s.out.Points, &hostv1.StatisticsPoint{
		At: unixTime(s.at), Runs: runTotals(&s.point.runs), Usage: usage(&s.point.usage), Refusals: refusals(s.refusals.Refusals),
	})
	s.point, s.refusals = totals{}, tally.Tally{}
}

func (s *summer) response() *hostv1.GetStatisticsResponse {
	if s.begun {
		s.endPoint()
	}
	out, total := s.out, &s.total
	var all totals
	all.add(total)
	out.Runs, out.Usage, out.Refusals = runTotals(&total.Runs), usage(&all.usage), refusals(total.Refusals)
	out.Workflows, out.MoreWorkflows = workflowTotals(&s.workflows)
	out.Models = modelTotals(total.Models)
	for e, n := range total.Errors {
		out.ProviderFailures = append(out.ProviderFailures, &hostv1.ProviderFailure{Provider: e.Provider, Code: e.Code, Count: n})
	}
	slices.SortFunc(out.ProviderFailures, func(a, b *hostv1.ProviderFailure) int {
		return cmp.Or(cmp.Compare(b.GetCount(), a.GetCount()), cmp.Compare(a.GetProvider(), b.GetProvider()), cmp.Compare(a.GetCode(), b.GetCode()))
	})
	return out
}

func unixTime(seconds int64) string { return wire.FormatTime(time.Unix(seconds, 0).UTC()) }

func runTotals(t *tally.Runs) *hostv1.RunTotals {
	out := &hostv1.RunTotals{Created: t.Created, Completed: t.Completed, Failed: t.Failed, Cancelled: t.Cancelled}
	for code, n := range t.Codes {
		out.Failures = append(out.Failures, &hostv1.FailureCount{Code: code, Count: n})
	}
	slices.SortFunc(out.Failures, func(a, b *hostv1.FailureCount) int {
		return cmp.Or(cmp.Compare(b.GetCount(), a.GetCount()), cmp.Compare(a.GetCode(), b.GetCode()))
	})
	if p := t.Took.Percentiles(50, 90, 95, 99); p != nil {
		out.P50Ms, out.P90Ms, out.P95Ms, out.P99Ms = &p[0], &p[1], &p[2], &p[3]
	}
	return out
}

func usage(c *tally.Calls) *hostv1.UsageTotals {
	out := &hostv1.UsageTotals{
		Calls: c.Calls, Unknown: c.Unknown, InputTokens: c.Input, OutputTokens: c.Output, CachedTokens: c.Cached,
		ReasoningTokens: c.Reasoning, Priced: c.Priced, CostUsd: c.Cost.Dollars(), Retries: c.Retries,
		RetryCostUsd: c.RetryCost.Dollars(), Answers: c.Answers, AcceptedFirst: c.First, Corrected: c.Corrected,
		Fallbacks: c.Fallbacks, FallbacksAccepted: c.Saved,
	}
	if p := c.Took.Percentiles(50, 95); p != nil {
		out.P50Ms, out.P95Ms = &p[0], &p[1]
	}
	return out
}

// workflowTotals returns the workflows with the most runs, and the number of the others.
func workflowTotals(w *workflowSums) ([]*hostv1.WorkflowTotals, int32) {
	ids := slices.SortedFunc(maps.Keys(w.by), func(a, b string) int {
		return cmp.Or(cmp.Compare(runsOf(&w.by[b].runs), runsOf(&w.by[a].runs)), cmp.Compare(a, b))
	})
	most := min(len(ids), maxTalliedWorkflows)
	out := make([]*hostv1.WorkflowTotals, most)
	for i, id := range ids[:most] {
		out[i] = &hostv1.WorkflowTotals{WorkflowId: id, Runs: runTotals(&w.by[id].runs), Usage: usage(&w.by[id].usage)}
	}
	return out, int32(len(ids) - most + len(w.others)) //nolint:gosec // G115: a number of workflows
}

// runsOf counts the runs that were created or have ended, of which most are the same.
func runsOf(r *tally.Runs) int64 { return max(r.Created, r.Completed+r.Failed+r.Cancelled) }

func modelTotals(all map[tally.Model]*tally.Calls) []*hostv1.ModelTotals {
	out := make([]*hostv1.ModelTotals, 0, len(all))
	for m, c := range all {
		out = append(out, &hostv1.ModelTotals{Provider: m.Provider, Model: m.Model, Usage: usage(c)})
	}
	slices.SortFunc(out, func(a, b *hostv1.ModelTotals) int {
		return cmp.Or(cmp.Compare(b.GetUsage().GetCostUsd(), a.GetUsage().GetCostUsd()), cmp.Compare(b.GetUsage().GetCalls(), a.GetUsage().GetCalls()),
			cmp.Compare(a.GetProvider(), b.GetProvider()), cmp.Compare(a.GetModel(), b.GetModel()))
	})
	return out
}

func refusals(all map[tally.Refusal]int64) []*hostv1.AnswerRefusal {
	keys := slices.SortedFunc(maps.Keys(all), func(a, b tally.Refusal) int {
		return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Provider, b.Provider),
			cmp.Compare(a.Model.Model, b.Model.Model), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Gate, b.Gate), cmp.Compare(a.Code, b.Code))
	})
	out := make([]*hostv1.AnswerRefusal, len(keys))
	for i, r := range keys {
		out[i] = &hostv1.AnswerRefusal{
			Provider: r.Provider, Model: r.Model.Model, Kind: named(r.Kind), Gate: named(r.Gate), Code: named(r.Code),
			Reason: r.Reason, Count: all[r],
		}
	}
	return out
}
