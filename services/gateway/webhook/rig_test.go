package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/lifecycle"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/webhook"
	"waybill.dev/waybill/services/gateway/webhook/subscription"
)

// call is a received request.
type call struct {
	at     time.Time
	url    string
	header http.Header
	body   []byte
	run    string
	seq    int
	taken  bool
}

// head is a header as it was spelled.
func (c call) head(name string) string {
	for k, v := range c.header {
		if k == name {
			return v[0]
		}
	}
	return ""
}

// receiver is the receiving servers. answer returns the status; nil accepts everything.
type receiver struct {
	mu     sync.Mutex // guards the fields below
	calls  []call
	answer func(call) webhook.Result
}

func (r *receiver) Post(_ context.Context, url string, header http.Header, body []byte) webhook.Result {
	var doc struct {
		RunID    string
		Sequence int
	}
	_ = json.Unmarshal(body, &doc)
	r.mu.Lock()
	defer r.mu.Unlock()
	c := call{time.Now(), url, header, bytes.Clone(body), doc.RunID, doc.Sequence, true}
	var res webhook.Result
	if r.answer != nil {
		res = r.answer(c)
	}
	c.taken = res.Reason == ""
	r.calls = append(r.calls, c)
	return res
}

// got lists what arrived as run/sequence.
func (r *receiver) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []string{}
	for _, c := range r.calls {
		out = append(out, fmt.Sprintf("%s/%d", c.run, c.seq))
	}
	return out
}

func (r *receiver) all() []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]call(nil), r.calls...)
}

// failing fails every request while it is true.
func (r *receiver) failing(yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = nil
	if yes {
		r.answer = func(call) webhook.Result { return webhook.Result{Reason: "status 500"} }
	}
}

// rig is a host's webhooks over stores that outlive them. It lives in a bubble of
// synctest: time advances when all goroutines are blocked.
type rig struct {
	t                *testing.T
	log              *memory.Log
	subs, lanes, bin *kvmemory.Store
	to               *receiver
	ask              *asker
	logged           *bytes.Buffer
	said             *locked // log of all running services
	policy           webhook.Policy
	wait             func(ctx context.Context, key string) // before each write of a lane
	svc              *webhook.Service                      // the one that was started last
	heads            map[string]frame.Head
	tenants          map[string]string // of runs
}

// bubble runs a test on a rig with one service.
func bubble(t *testing.T, test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(newRig(t))
	})
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{
		t:       t,
		log:     memory.New(),
		subs:    kvmemory.New(),
		lanes:   kvmemory.New(),
		bin:     kvmemory.New(),
		to:      &receiver{},
		ask:     &asker{},
		logged:  &bytes.Buffer{},
		policy:  webhook.DefaultPolicy(),
		heads:   map[string]frame.Head{},
		tenants: map[string]string{},
	}
	r.said = &locked{to: r.logged}
	return r
}

var hostKey = []byte(strings.Repeat("k", 32))

// start runs a service; stop shuts it down gracefully.
func (r *rig) start() (stop func()) { return r.startOn(&power{}) }

// power is the power of one process: without it, writes are lost.
type power struct{ off atomic.Bool }

// machine is a store as a process sees it.
type machine struct {
	kv.Store
	power *power
	// wait is called before each update; nil waits for nothing.
	wait func(ctx context.Context, key string)
}

func (m machine) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if m.power.off.Load() {
		return 0, kv.ErrUnavailable
	}
	return m.Store.Put(ctx, key, value)
}

func (m machine) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if m.wait != nil {
		m.wait(ctx, key)
	}
	if m.power.off.Load() {
		return 0, kv.ErrUnavailable
	}
	return m.Store.Update(ctx, key, value, revision)
}

func (m machine) Delete(ctx context.Context, key string, revision uint64) error {
	if m.power.off.Load() {
		return kv.ErrUnavailable
	}
	return m.Store.Delete(ctx, key, revision)
}

// startOn runs a service whose power can fail.
func (r *rig) startOn(p *power) (stop func()) {
	r.t.Helper()
	svc, err := webhook.New(webhook.Config{HostKey: hostKey, Delivery: r.policy}, webhook.Deps{
		Log:           r.log,
		Subscriptions: machine{r.subs, p, nil},
		Lanes:         machine{r.lanes, p, r.wait},
		Dead:          machine{r.bin, p, nil},
		Clock:         time.Now,
		Poster:        r.to,
		Questions:     r.ask,
		Logger:        slog.New(slog.NewTextHandler(r.said, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	require.NoError(r.t, err)
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = svc.Run(ctx) }()
	synctest.Wait()
	r.svc = svc
	stop = func() { cancel(); <-done }
	r.t.Cleanup(stop)
	return stop
}

// locked is a writer for several goroutines.
type locked struct {
	mu sync.Mutex // guards to
	to *bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}

// hook registers a webhook of acme for some types.
func (r *rig) hook(types ...wire.EventType) *subscription.Entry {
	return r.tagged("acme", nil, types...)
}

func (r *rig) tagged(tenant string, tags []string, types ...wire.EventType) *subscription.Entry {
	r.t.Helper()
	e, err := r.svc.Register(r.t.Context(), tenant, "https://hooks.example/"+tenant+"?token=url-secret", types, tags)
	require.NoError(r.t, err)
	return e
}

// run creates a run of acme.
func (r *rig) run(id string, change ...func(*wire.RunRecord)) {
	r.t.Helper()
	rec := wire.RunRecord{
		RunID:         id,
		WorkflowID:    "flow",
		Owner:         wire.Owner{Tenant: "acme"},
		CreatedAt:     "2026-01-01T00:00:00.000Z",
		EngineVersion: 1,
		Traceparent:   "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
	}
	for _, f := range change {
		f(&rec)
	}
	b, err := json.Marshal(rec)
	require.NoError(r.t, err)
	r.append(id, frame.NewStart(subject.Run{Tenant: rec.Owner.Tenant, WorkflowID: "flow", RunID: id}, b))
}

func (r *rig) append(id string, f *frame.Frame) {
	r.t.Helper()
	pos, err := r.log.Append(r.t.Context(), f, r.heads[id].Pos)
	require.NoError(r.t, err)
	f.Pos = pos
	r.heads[id], r.tenants[id] = f.Head(), f.Run.Tenant
}

// say appends events to a run, as one frame.
func (r *rig) say(id string, types ...wire.EventType) {
	r.t.Helper()
	head := r.heads[id]
	var events []wire.Event
	for i, t := range types {
		d := wire.Draft{Type: t, Payload: json.RawMessage(`{"n":12345678901234567890,"html":"<&>"}`)}
		events = append(events, d.Place(id, head.Next+i, time.Now()))
	}
	r.append(id, frame.New(subject.Run{Tenant: r.tenants[id], WorkflowID: "flow", RunID: id}, subject.Step, head, events))
}

// pass advances the fake time.
func (r *rig) pass(d time.Duration) {
	synctest.Wait()
	lifecycle.Wait(r.t.Context(), d)
	synctest.Wait()
}

// settle waits until all goroutines are blocked.
func (r *rig) settle() { synctest.Wait() }

// standard returns the webhook-signature of a delivery by the secrets of some generations.
func (r *rig) standard(c call, e *subscription.Entry, generations ...int) string {
	var secrets []string
	for _, g := range generations {
		secrets = append(secrets, r.svc.Secret("acme", e.ID, g))
	}
	return webhook.SignStandard(secrets, webhook.MessageID(e.ID, c.run, c.seq), c.at.Unix(), c.body)
}

// drained reports whether no delivery waits.
func (r *rig) drained(e *subscription.Entry) {
	r.t.Helper()
	left, err := r.svc.PendingLanes(r.t.Context(), e.Tenant, e.ID)
	require.NoError(r.t, err)
	require.Empty(r.t, left)
}

// status is the state of a webhook.
func (r *rig) status(e *subscription.Entry) subscription.Condition {
	r.t.Helper()
	all, err := r.svc.List(r.t.Context(), e.Tenant)
	require.NoError(r.t, err)
	for _, now := range all {
		if now.ID == e.ID {
			return now.State.Health.Condition(time.Now())
		}
	}
	return ""
}
