package eventlog

import (
	"cmp"
	"context"
	"slices"
	"time"

	eventlogv1 "waybill.dev/waybill/proto/gen/go/waybill/eventlog/v1"
	hostv1 "waybill.dev/waybill/proto/gen/go/waybill/host/v1"
	"waybill.dev/waybill/services/eventlog/store"
	"waybill.dev/waybill/services/eventlog/tally"
)

// maxListedTenants limits the tenants of an answer, tenantsAtOnce those of a page of the store.
const (
	maxListedTenants = 100
	tenantsAtOnce    = 500
)

// ListTenantStatistics adds up the tallies of tenants.
func (s *Service) ListTenantStatistics(ctx context.Context, req *eventlogv1.ListTenantStatisticsRequest) (*eventlogv1.ListTenantStatisticsResponse, error) {
	since, until, err := span(req.GetSince(), req.GetUntil())
	if err != nil {
		return nil, err
	}
	if err := s.caughtUp(ctx); err != nil {
		return nil, err
	}
	var out *hostv1.ListTenantStatisticsResponse
	err = s.widening(grain(since, until, s.clock()), func(g tally.Grain, limit int) (err error) {
		out, err = s.tenants(ctx, req.GetTenant(), since, until, g, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &eventlogv1.ListTenantStatisticsResponse{Statistics: out}, nil
}

// tenants adds up the tallies of one tenant, or of all.
func (s *Service) tenants(ctx context.Context, one string, since, until time.Time, g tally.Grain, limit int) (*hostv1.ListTenantStatisticsResponse, error) {
	list := tenantList{read: store.ReadTallies{Limit: limit}}
	add := func(tenant string) error {
		q := tallyQuery(tenant, "", since, until, g)
		var sum totals
		counted := false
		if err := list.read.Query(); err != nil {
			return err
		}
		err := s.store.Tallies(ctx, q, func(t *store.Tallied) error {
			counted = true
			sum.add(&t.Tally)
			return list.read.Add(t)
		})
		if counted {
			list.add(tenant, &sum)
		}
		return err
	}
	if one != "" {
		err := add(one)
		return list.response(since, until, g), err
	}
	for after := ""; ; {
		page, err := s.store.TalliedTenants(ctx, after, tenantsAtOnce)
		if err != nil {
			return nil, err
		}
		for _, after = range page {
			if err := add(after); err != nil {
				return nil, err
			}
		}
		if len(page) < tenantsAtOnce {
			return list.response(since, until, g), nil
		}
	}
}

// tenantList has the most expensive tenants.
type tenantList struct {
	read    store.ReadTallies
	tenants []*hostv1.TenantTotals
	others  int
}

func (l *tenantList) add(tenant string, sum *totals) {
	l.tenants = append(l.tenants, &hostv1.TenantTotals{Tenant: tenant, Runs: runTotals(&sum.runs), Usage: usage(&sum.usage)})
	if len(l.tenants) > 2*maxListedTenants {
		l.cut()
	}
}

// cut drops all but the most expensive.
func (l *tenantList) cut() {
	slices.SortFunc(l.tenants, func(a, b *hostv1.TenantTotals) int {
		return cmp.Or(cmp.Compare(b.GetUsage().GetCostUsd(), a.GetUsage().GetCostUsd()),
			cmp.Compare(b.GetRuns().GetCreated(), a.GetRuns().GetCreated()), cmp.Compare(a.GetTenant(), b.GetTenant()))
	})
	l.others += max(0, len(l.tenants)-maxListedTenants)
	l.tenants = l.tenants[:min(len(l.tenants), maxListedTenants)]
}

func (l *tenantList) response(since, until time.Time, g tally.Grain) *hostv1.ListTenantStatisticsResponse {
	l.cut()
	q := tallyQuery("", "", since, until, g)
	return &hostv1.ListTenantStatisticsResponse{
		Since: unixTime(q.From), Until: unixTime(q.Until), Tenants: l.tenants, MoreTenants: int32(l.others), //nolint:gosec // G115: a number of tenants
	}
}
