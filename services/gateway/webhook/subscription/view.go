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
	"waybill.dev/waybill/internal/lifecycle"
)

// index is all subscriptions by tenant and id; those with one part only are hidden.
type index struct{ byTenant map[string]map[string]*Entry }

func newIndex() *index { return &index{map[string]map[string]*Entry{}} }

// apply takes one part in, or out.
func (x *index) apply(e kv.Entry) error {
	tenant, id, part, err := cut(e.Key)
	if err != nil {
		return err
	}
	next := Entry{}
	if old := x.byTenant[tenant][id]; old != nil {
		next = *old // an entry that was handed out stays as it is
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

// View is all subscriptions in memory, kept up with the store. It may lag behind.
type View struct {
	kv  kv.Store
	log *slog.Logger

	mu      sync.Mutex // guards all below
	all     *index
	ready   chan struct{}
	changed chan struct{} // closed and replaced at every change
}

// NewView makes a view; it is empty until Run has read the store.
func NewView(s kv.Store, log *slog.Logger) *View {
	return &View{kv: s, log: log, all: newIndex(), ready: make(chan struct{}), changed: make(chan struct{})}
}

// rewatch is the wait before a watch that broke is begun again.
const rewatch = time.Second

// Run keeps the view up until ctx ends.
func (v *View) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := v.watch(ctx)
		if ctx.Err() != nil {
			return
		}
		v.log.Warn("webhooks: subscriptions are not seen, will try again", "error", err)
		lifecycle.Wait(ctx, rewatch)
	}
}

// watch reads all subscriptions anew, and shows them once it has all.
func (v *View) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	ready, shown := make(chan struct{}), make(chan struct{})
	fresh := newIndex()
	go func() {
		defer close(shown)
		select {
		case <-ready:
			v.show(fresh)
		case <-ctx.Done():
		}
	}()
	err := v.kv.Watch(ctx, prefix, ready, func(e kv.Entry) { v.apply(fresh, e) })
	cancel()
	<-shown
	return err
}

func (v *View) show(fresh *index) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.all = fresh
	select {
	case <-v.ready:
	default:
		close(v.ready)
	}
	v.tell()
}

func (v *View) apply(x *index, e kv.Entry) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := x.apply(e); err != nil {
		v.log.Error("webhooks: a subscription cannot be read", "error", err)
	}
	v.tell()
}

// tell wakes who waits for a change. The caller holds mu.
func (v *View) tell() {
	close(v.changed)
	v.changed = make(chan struct{})
}

// Learn takes in what this process has written, before the store tells it.
func (v *View) Learn(e *Entry) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if old := v.all.byTenant[e.Tenant][e.ID]; old != nil && old.StateRevision < e.StateRevision {
		v.all.put(e.Tenant, e.ID, e)
		v.tell()
	}
}

// Ready is closed once the view has been filled.
func (v *View) Ready() <-chan struct{} { return v.ready }

// Changed is closed at the next change.
func (v *View) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

// Lookup finds a subscription; nil when it is not there, or not yet seen.
func (v *View) Lookup(tenant, id string) *Entry {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := v.all.byTenant[tenant][id]
	if e == nil || e.Revision == 0 || e.StateRevision == 0 {
		return nil
	}
	return e
}

// All gives the subscriptions of all tenants.
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
