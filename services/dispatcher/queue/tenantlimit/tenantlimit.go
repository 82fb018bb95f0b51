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
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"time"

	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/workflow"
)

// anyTenant is the entry of tenants without one of their own.
const anyTenant = "*"

const (
	maxWeight      = 1000
	maxConcurrency = workflow.MaxConcurrency
)

// Tenant is the limits and the share of one tenant.
type Tenant struct {
	// Weight is the tenant's share of the slots relative to others; 0 means the default, 1.
	Weight int `json:"weight"`
	// Priority is the priority of runs whose workflow sets none.
	Priority int `json:"priority"`
	// Concurrency limits the concurrent runs of all workflows; nil means no limit.
	Concurrency *Concurrency `json:"concurrency"`
	// Rate limits the run starts within a period; nil means no limit.
	Rate *Rate `json:"rate"`
	// Retention is how long runs are kept after their end, as workflow.ParseRetention reads it; nil
	// means the installation's.
	Retention *string `json:"retention"`
}

// Concurrency limits the concurrent runs.
type Concurrency struct {
	Limit int `json:"limit"`
}

// Rate limits the run starts within a period.
type Rate struct {
	Limit    int   `json:"limit"`
	PeriodMs int64 `json:"periodMs"`
}

// Period is the length of the period.
func (r Rate) Period() time.Duration { return time.Duration(r.PeriodMs) * time.Millisecond }

// Limits are the limits of all tenants. The nil Limits has none. They are immutable and safe for
// concurrent use.
type Limits struct {
	tenants map[string]Tenant
}

const form = `want {"tenants": {TENANT: {"weight": N, "priority": N, "concurrency": {"limit": N}, "rate": {"limit": N, "periodMs": MS}, "retention": "90d"}}}, each member optional`

// entry is a tenant's entry of the file.
type entry struct {
	Tenant

	// Weight is nil for the default.
	Weight *int `json:"weight"`
}

//go:embed limits.schema.json
var schemaJSON []byte

// Schema is the JSON Schema of the operator's document.
func Schema() []byte { return schemaJSON }

// Parse parses the operator's document. The error has a line for each invalid value, with its path.
func Parse(doc []byte) (*Limits, error) {
	var file struct {
		Schema  string           `json:"$schema"` // for editors
		Tenants map[string]entry `json:"tenants"`
	}
	f := settings.Read(doc, &file)
	if file.Tenants == nil { // an empty file is probably a mistake
		f.Wrong("/tenants", "missing")
	}
	tenants := map[string]Tenant{}
	for _, name := range slices.Sorted(maps.Keys(file.Tenants)) {
		at := settings.Path("/tenants", name)
		if name != anyTenant && !subject.Token(name) {
			f.Wrong(at, "want the name of a tenant or *")
		}
		tenants[name] = file.Tenants[name].check(f, at)
	}
	if err := f.Err(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, form)
	}
	return &Limits{tenants}, nil
}

// check adds values out of range to f, and returns the tenant.
func (e entry) check(f *settings.File, at string) Tenant {
	t := e.Tenant
	if e.Weight != nil {
		f.Range(at+"/weight", int64(*e.Weight), 1, maxWeight)
		t.Weight = *e.Weight
	}
	f.Range(at+"/priority", int64(t.Priority), -workflow.MaxPriority, workflow.MaxPriority)
	if c := t.Concurrency; c != nil {
		f.Range(at+"/concurrency/limit", int64(c.Limit), 1, maxConcurrency)
	}
	if r := t.Rate; r != nil {
		f.Range(at+"/rate/limit", int64(r.Limit), 1, workflow.MaxRate)
		f.Range(at+"/rate/periodMs", r.PeriodMs, workflow.MinPeriod.Milliseconds(), workflow.MaxPeriod.Milliseconds())
	}
	if t.Retention != nil {
		if _, err := workflow.ParseRetention(*t.Retention); err != nil {
			f.Wrong(at+"/retention", "%s", err)
		}
	}
	return t
}

// Retention returns how long runs of a tenant are kept after their end, 0 without limit. ok is false if
// the file does not set it.
func (l *Limits) Retention(tenant string) (keep time.Duration, ok bool) {
	t := l.For(tenant)
	if t.Retention == nil {
		return 0, false
	}
	keep, err := workflow.ParseRetention(*t.Retention)
	return keep, err == nil
}

// For returns the limits of a tenant.
func (l *Limits) For(tenant string) Tenant {
	var t Tenant
	if l != nil {
		var ok bool
		if t, ok = l.tenants[tenant]; !ok {
			t = l.tenants[anyTenant]
		}
	}
	t.Weight = cmp.Or(t.Weight, 1)
	return t
}
