package subscription

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/retry"
)

// index holds subscriptions by tenant and id. It hides those with one part only.
type index struct{ byTenant map[string]map[string]*Entry }

func newIndex() *index { return &index{map[string]map[string]*Entry{}} }

// apply adds, updates or removes one part of a subscription.
func (x *index) apply(e kv.Entry) error {
	tenant, id, part, err := splitKey(e.Key)
	if err != nil {
		return err
	}
	next := Entry{}
	if old := x.byTenant[tenant][id]; old != nil {
		next = *old // entries are immutable after they are returned
	}
	into, rev := any(&next.State), &next.StateRevision
	if part == partSub {
		into, rev = &next.Subscription, &next.Revision
	}
	if e.Value == nil {
		*rev = 0
	} else if e.Revision > *rev {
		if part == partState {
			next.State = State{}
		}
		if err := json.Unmarshal(e.Value, into); err != nil {
			return fmt.Errorf("read %s: %w", e.Key, err)
		}
		*rev = e.Revision
	}
	x.put(tenant, id, &next)
	return nil
}

func (x *index) put(tenant, id string, e *Entry) {
	if e.Revision == 0 && e.StateRevision == 0 {
		delete(x.byTenant[tenant], id)
		if len(x.byTenant[tenant]) == 0 {
			delete(x.byTenant, tenant)
		}
		return
	}
	if x.byTenant[tenant] == nil {
		x.byTenant[tenant] = map[string]*Entry{}
	}
	x.byTenant[tenant][id] = e
}

func (x *index) tenant(tenant string) []*Entry {
	var out []*Entry
	for _, e := range x.byTenant[tenant] {
		if e.Revision > 0 && e.StateRevision > 0 {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *Entry) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// View is an in-memory copy of all subscriptions. It may lag behind the store.
type View struct {
	kv  kv.Store
	log *slog.Logger

	mu      sync.Mutex // guards all below
	all     *index
	ready   chan struct{}
	changed chan struct{} // closed and replaced at every change
}

// NewView makes a view. It is empty until Run has read the store.
func NewView(s kv.Store, log *slog.Logger) *View {
	return &View{kv: s, log: log, all: newIndex(), ready: make(chan struct{}), changed: make(chan struct{})}
}

// rewatch is the wait before a broken watch is restarted.
const rewatch = time.Second

// Run keeps the view up to date until ctx ends.
func (v *View) Run(ctx context.Context) {
	for range retry.Every(rewatch).Tries(ctx) {
		err := v.watch(ctx)
		if ctx.Err() != nil {
			return
		}
		v.log.Warn("webhooks: cannot watch subscriptions, will retry", "error", err)
	}
}

// watch reads all subscriptions again and publishes them when it has read all.
func (v *View) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	ready, published := make(chan struct{}), make(chan struct{})
	fresh := newIndex()
	go func() {
		defer close(published)
		select {
		case <-ready:
			v.publish(fresh)
		case <-ctx.Done():
		}
	}()
	err := v.kv.Watch(ctx, prefix, ready, func(e kv.Entry) { v.apply(fresh, e) })
	cancel()
	<-published
	return err
}

func (v *View) publish(fresh *index) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = fresh
	select {
	case <-v.ready:
	default:
		close(v.ready)
	}
	v.notify()
}

func (v *View) apply(x *index, e kv.Entry) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := x.apply(e); err != nil {
		v.log.Error("webhooks: cannot read a subscription", "error", err)
	}
	v.notify()
}

// notify wakes waiters for a change. The caller holds mu.
func (v *View) notify() {
	close(v.changed)
	v.changed = make(chan struct{})
}

// Learn applies a write of this process before the store's watch reports it.
func (v *View) Learn(e *Entry) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if old := v.all.byTenant[e.Tenant][e.ID]; old != nil && old.StateRevision < e.StateRevision {
		v.all.put(e.Tenant, e.ID, e)
		v.notify()
	}
}

// Ready is closed when the view has been filled.
func (v *View) Ready() <-chan struct{} { return v.ready }

// Changed is closed at the next change.
func (v *View) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

// Lookup returns a subscription; nil if it does not exist or is not yet in the view.
func (v *View) Lookup(tenant, id string) *Entry {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.all.byTenant[tenant][id]
	if e == nil || e.Revision == 0 || e.StateRevision == 0 {
		return nil
	}
	return e
}

// All returns the subscriptions of all tenants.
func (v *View) All() map[string][]*Entry {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := map[string][]*Entry{}
	for _, tenant := range slices.Collect(maps.Keys(v.all.byTenant)) {
		if list := v.all.tenant(tenant); len(list) > 0 {
			out[tenant] = list
		}
	}
	return out
}

// Of returns the subscriptions of a tenant, ordered by id.
func (v *View) Of(tenant string) []*Entry {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.all.tenant(tenant)
}
