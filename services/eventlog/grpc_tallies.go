package eventlog

import (
	"cmp"
	"context"
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

// Limits of statistics. maxSteps limits the points of an answer. It reads a row for each point and workflow.
const (
	maxStatisticsSpan   = 366 * 24 * time.Hour
	maxSteps            = 170
	maxTalliedWorkflows = 100
)

// GetStatistics adds up the tallies of a tenant's workflows.
func (s *Service) GetStatistics(ctx context.Context, req *eventlogv1.GetStatisticsRequest) (*eventlogv1.GetStatisticsResponse, error) {
	since, err := time.Parse(time.RFC3339, req.GetSince())
	if err != nil {
		return nil, fault.InvalidQuery("since", "want a time of RFC 3339")
	}
	until, err := time.Parse(time.RFC3339, req.GetUntil())
	if err != nil {
		return nil, fault.InvalidQuery("until", "want a time of RFC 3339")
	}
	if span := until.Sub(since); span <= 0 || span > maxStatisticsSpan {
		return nil, fault.InvalidQuery("since", "want a time up to 366 days before until")
	}
	if err := s.caughtUp(ctx); err != nil {
		return nil, err
	}
	q := store.TallyQuery{Tenant: req.GetTenant(), Grain: grain(since, until, s.clock()), WorkflowID: req.GetWorkflowId()}
	q.From, q.Until = q.Grain.Start(since), q.Grain.Start(until.Add(-time.Nanosecond))+int64(q.Grain)
	rows, err := s.store.Tallies(ctx, q)
	if err != nil {
		return nil, s.failure(store.Key{}, err)
	}
	return &eventlogv1.GetStatisticsResponse{Statistics: statisticsOf(q, rows)}, nil
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

// statisticsOf adds up tallies, which are ordered by time.
func statisticsOf(q store.TallyQuery, rows []store.Tallied) *hostv1.GetStatisticsResponse {
	var (
		total     tally.Tally
		workflows = map[string]*tally.Tally{}
		out       = &hostv1.GetStatisticsResponse{
			Since: unixTime(q.From), Until: unixTime(q.Until), StepSeconds: int32(q.Grain), //nolint:gosec // G115: at most a day
		}
	)
	for at := 0; at < len(rows); {
		var point tally.Tally
		start := rows[at].At
		for ; at < len(rows) && rows[at].At == start; at++ {
			point.Merge(&rows[at].Tally)
			w := workflows[rows[at].WorkflowID]
			if w == nil {
				w = &tally.Tally{}
				workflows[rows[at].WorkflowID] = w
			}
			w.Merge(&rows[at].Tally)
		}
		total.Merge(&point)
		out.Points = append(out.Points, &hostv1.StatisticsPoint{
			At: unixTime(start), Runs: runTotals(&point), Usage: usageTotals(point.Models), Refusals: refusals(point.Refusals),
		})
	}
	out.Runs, out.Usage, out.Refusals = runTotals(&total), usageTotals(total.Models), refusals(total.Refusals)
	out.Workflows, out.MoreWorkflows = workflowTotals(workflows)
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

func runTotals(t *tally.Tally) *hostv1.RunTotals {
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

// usageTotals adds up the counts of all models.
func usageTotals(models map[tally.Model]*tally.Calls) *hostv1.UsageTotals {
	var sum tally.Calls
	for _, c := range models {
		sum.Merge(c)
	}
	return usage(&sum)
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
func workflowTotals(all map[string]*tally.Tally) ([]*hostv1.WorkflowTotals, int32) {
	ids := slices.SortedFunc(maps.Keys(all), func(a, b string) int {
		return cmp.Or(cmp.Compare(runsOf(all[b]), runsOf(all[a])), cmp.Compare(a, b))
	})
	most := min(len(ids), maxTalliedWorkflows)
	out := make([]*hostv1.WorkflowTotals, most)
	for i, id := range ids[:most] {
		out[i] = &hostv1.WorkflowTotals{WorkflowId: id, Runs: runTotals(all[id]), Usage: usageTotals(all[id].Models)}
	}
	return out, int32(len(ids) - most) //nolint:gosec // G115: a number of workflows
}

// runsOf counts the runs that were created or have ended, of which most are the same.
func runsOf(t *tally.Tally) int64 { return max(t.Created, t.Completed+t.Failed+t.Cancelled) }

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
