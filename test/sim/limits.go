package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/services/dispatcher"
	"waybill.dev/waybill/services/dispatcher/queue/tenantlimit"
)

// Limited returns a scenario in which runs wait for slots and for concurrency limits of their
// workflows and their tenant. Run it with Options.Desk.
func Limited(seed uint64) Scenario {
	r := rand.New(rand.NewPCG(seed, 0x11317))
	s := Generate(seed)
	for i := range s.Flows {
		s.Flows[i].Limit = r.IntN(4)
	}
	s.TenantLimit = r.IntN(4)
	for run := range r.IntN(8) {
		s.add(r, Step{Do: "create", Run: maxRuns + run})
	}
	return s
}

// setUpDesk sets up the store of waiting runs with the scenario's limits.
func (p *process) setUpDesk(d *dispatcher.Deps) error {
	if p.w.desk == "" {
		return nil
	}
	d.Waiting, d.Rates = ticketsPort{recordsPort{p.w.tickets, p}}, recordsPort{p.w.tickets, p}
	if p.w.scenario.TenantLimit == 0 {
		return nil
	}
	file := filepath.Join(p.w.desk, fmt.Sprintf("limit-%d.json", p.w.scenario.TenantLimit))
	if _, err := os.Stat(file); err != nil {
		doc := fmt.Sprintf(`{"tenants":{"*":{"concurrency":{"limit":%d}}}}`, p.w.scenario.TenantLimit)
		if err := os.WriteFile(file, []byte(doc), 0o600); err != nil {
			return err
		}
	}
	var err error
	d.TenantLimits, err = settings.Open("tenant limits", file, tenantlimit.Parse, p.logger())
	return err
}

// ticketsPort is a process's access to the store of tickets and permits. An answer may be lost, and
// a write may reach the store after its process died.
type ticketsPort struct{ recordsPort }

// Get reads a record; see kv.Store.
func (t ticketsPort) Get(ctx context.Context, key string) (e kv.Entry, err error) {
	var got kv.Entry
	err = t.send(ctx, "get "+key, func() (err error) {
		got, err = t.Store.Get(t.p.w.background(), key)
		return err
	})
	if err != nil {
		return kv.Entry{}, err
	}
	return got, nil
}

// Update writes a record at a revision; see kv.Store.
func (t ticketsPort) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	var rev uint64
	err := t.send(ctx, fmt.Sprintf("update %s at %d %s", key, revision, short(value)), func() (err error) {
		rev, err = t.Store.Update(t.p.w.background(), key, value, revision)
		return err
	})
	if err != nil {
		return 0, err
	}
	return rev, nil
}

// Delete deletes a record at a revision; see kv.Store.
func (t ticketsPort) Delete(ctx context.Context, key string, revision uint64) error {
	return t.send(ctx, fmt.Sprintf("delete %s at %d", key, revision), func() error {
		return t.Store.Delete(t.p.w.background(), key, revision)
	})
}

func (t ticketsPort) send(ctx context.Context, what string, do func() error) error {
	return recordsFault(t.p.call(ctx, atTickets, what, do))
}

// deskKeys returns the keys of the remaining tickets and permits.
func (w *World) deskKeys() (keys []string) {
	for _, prefix := range []string{"ready.", "limited.", "permit."} {
		entries, err := kv.List(w.background(), w.tickets, prefix)
		if err != nil {
			w.violate(err)
		}
		for _, e := range entries {
			keys = append(keys, e.Key+" "+string(e.Value))
		}
	}
	return keys
}

// within checks the calls under way against the limits, for processes that hold their leases and
// for each process. A call that began before its process lost the lease may overlap with the run
// that took its permit. The scheduler calls it.
func (w *World) within() error {
	if w.desk == "" {
		return nil
	}
	w.mu.Lock()
	calls := make(map[string]calling, len(w.underWay))
	for key, c := range w.underWay {
		if !c.p.dead {
			calls[key] = c
		}
	}
	w.mu.Unlock()
	runs := map[string]map[string]bool{} // by scope
	count := func(scope, run string, limit int) error {
		if runs[scope] == nil {
			runs[scope] = map[string]bool{}
		}
		if runs[scope][run] = true; limit > 0 && len(runs[scope]) > limit {
			return fmt.Errorf("limit: %d runs execute under limit %d of %s: %v", len(runs[scope]), limit, scope, calls)
		}
		return nil
	}
	for key, c := range calls {
		run, _, _ := strings.Cut(key, " ")
		h := w.runs[run]
		scopes := []string{" in " + c.p.name}
		if c.p.held(c.id) {
			scopes = append(scopes, "")
		}
		for _, s := range scopes {
			if err := count("the tenant"+s, run, w.scenario.TenantLimit); err != nil {
				return err
			}
			if err := count(h.record.WorkflowID+s, run, h.flow.Limit); err != nil {
				return err
			}
		}
	}
	return nil
}
