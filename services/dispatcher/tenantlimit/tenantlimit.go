// Package tenantlimit reads the limits and shares that the operator gives to tenants:
//
//	{"tenants": {
//	  "acme": {"weight": 2, "concurrency": {"limit": 50}, "rate": {"limit": 100, "periodMs": 60000}},
//	  "*":    {"priority": -1, "concurrency": {"limit": 20}}}}
//
// A tenant without an entry of its own has that of "*".
package tenantlimit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"waybill.dev/waybill/protocol/strictjson"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/workflow"
)

// others is the entry of tenants without one of their own.
const others = "*"

const (
	maxWeight      = 1000
	maxConcurrency = workflow.MaxConcurrency
)

// Tenant is what holds for one tenant.
type Tenant struct {
	// Weight is the tenant's share of the slots against that of others; 0: 1.
	Weight int `json:"weight"`
	// Priority is that of runs whose workflow sets none.
	Priority int `json:"priority"`
	// Concurrency bounds the runs executed at a time, of all workflows; nil: no limit.
	Concurrency *Concurrency `json:"concurrency"`
	// Rate bounds the runs that start within a period; nil: no limit.
	Rate *Rate `json:"rate"`
}

// Concurrency bounds the runs executed at a time.
type Concurrency struct {
	Limit int `json:"limit"`
}

// Rate bounds the runs that start within a period.
type Rate struct {
	Limit    int   `json:"limit"`
	PeriodMs int64 `json:"periodMs"`
}

// Period is the length of the period.
func (r Rate) Period() time.Duration { return time.Duration(r.PeriodMs) * time.Millisecond }

// Limits are those of all tenants. The nil Limits have none. They never change, and are safe for
// concurrent use.
type Limits struct {
	tenants map[string]Tenant
}

const form = `want {"tenants": {TENANT: {"weight": N, "priority": N, "concurrency": {"limit": N}, "rate": {"limit": N, "periodMs": MS}}}}, each member optional`

// Parse reads the operator's document. The error names each wrong value by its place.
func Parse(doc []byte) (*Limits, error) {
	var file struct {
		Tenants map[string]Tenant `json:"tenants"`
	}
	if err := strictjson.Decode(doc, strictjson.Limits{}, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", form, err)
	}
	if file.Tenants == nil { // an empty file is probably a mistake
		return nil, fmt.Errorf(`%s: member "tenants" is missing`, form)
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(file.Tenants)) {
		at := "/tenants/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		if name != others && !subject.Token(name) {
			errs = append(errs, fmt.Errorf("at %q: want the name of a tenant or *", at))
		}
		errs = append(errs, file.Tenants[name].check(at)...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Limits{file.Tenants}, nil
}

// check finds the values out of range.
func (t Tenant) check(at string) (errs []error) {
	inRange := func(member string, v, low, high int64) {
		if v < low || v > high {
			errs = append(errs, fmt.Errorf("at %q: %d: want %d to %d", at+member, v, low, high))
		}
	}
	inRange("/weight", int64(t.Weight), 0, maxWeight)
	inRange("/priority", int64(t.Priority), -workflow.MaxPriority, workflow.MaxPriority)
	if c := t.Concurrency; c != nil {
		inRange("/concurrency/limit", int64(c.Limit), 1, maxConcurrency)
	}
	if r := t.Rate; r != nil {
		inRange("/rate/limit", int64(r.Limit), 1, workflow.MaxRate)
		inRange("/rate/periodMs", r.PeriodMs, workflow.MinPeriod.Milliseconds(), workflow.MaxPeriod.Milliseconds())
	}
	return errs
}

// Of is what holds for a tenant.
func (l *Limits) Of(tenant string) Tenant {
	var t Tenant
	if l != nil {
		var ok bool
		if t, ok = l.tenants[tenant]; !ok {
			t = l.tenants[others]
		}
	}
	t.Weight = cmp.Or(t.Weight, 1)
	return t
}
