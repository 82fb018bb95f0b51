package retention

import (
	"context"
	"time"
)

// Ages are the ages in days at which a report splits ended runs.
func Ages() []int { return []int{1, 7, 30, 90, 365} }

const day = 24 * time.Hour

// FlowReport describes the ended runs of a workflow.
type FlowReport struct {
	Flow
	Retention

	Runs int64
	// Due are runs whose retention is over, NextDay those whose retention ends within a day.
	Due, NextDay int64
	// Older counts runs by Ages: those that ended more than so many days ago.
	Older []int64
}

// Report describes the ended runs of a tenant's workflows, up to limit of them. now is the time of
// the clock of retention.
func Report(ctx context.Context, index Index, p Policies, tenant string, now time.Time, limit int) (all []FlowReport, more bool, err error) {
	flows, err := index.Flows(ctx, Flow{Tenant: tenant}, limit+1)
	if err != nil {
		return nil, false, err
	}
	for _, f := range flows {
		if f.Tenant != tenant {
			break
		}
		if len(all) == limit {
			return all, true, nil
		}
		r, err := reportOf(ctx, index, p, f, now)
		if err != nil {
			return nil, false, err
		}
		all = append(all, r)
	}
	return all, false, nil
}

func reportOf(ctx context.Context, index Index, p Policies, f Flow, now time.Time) (FlowReport, error) {
	keep, err := p.Of(ctx, f.Tenant, f.WorkflowID)
	if err != nil {
		return FlowReport{}, err
	}
	instants := []time.Time{time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} // all
	for _, days := range Ages() {
		instants = append(instants, now.Add(-time.Duration(days)*day))
	}
	if keep.Keep > 0 {
		instants = append(instants, now.Add(-keep.Keep), now.Add(day-keep.Keep))
	}
	counts, err := index.Count(ctx, f, instants...)
	if err != nil {
		return FlowReport{}, err
	}
	r := FlowReport{Flow: f, Retention: keep, Runs: counts[0], Older: counts[1 : 1+len(Ages())]}
	if keep.Keep > 0 {
		r.Due = counts[len(counts)-2]
		r.NextDay = counts[len(counts)-1] - r.Due
	}
	return r, nil
}

// Age is the number of runs that ended within a range of days ago.
type Age struct {
	// From is included, To is not; 0 means no limit.
	From, To int
	Runs     int64
}

// Split returns the runs of each age, the youngest first. older counts those that ended more than
// Ages days ago.
func Split(runs int64, older []int64) []Age {
	ages := make([]Age, 0, len(older)+1)
	from := 0
	for i, days := range Ages() {
		ages = append(ages, Age{From: from, To: days, Runs: runs - older[i]})
		from, runs = days, older[i]
	}
	return append(ages, Age{From: from, Runs: runs})
}
