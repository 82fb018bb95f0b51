package queue_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"waybill.dev/waybill/internal/kv"
	"waybill.dev/waybill/internal/kv/jetkv"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/natsd/natsdtest"
	"waybill.dev/waybill/internal/runlog"
	"waybill.dev/waybill/internal/runlog/jetstream"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/frame"
	"waybill.dev/waybill/protocol/subject"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, natsdtest.LeftBehind()...) }

// rig is a log, its stores, and the dispatchers of a test.
type rig struct {
	log     runlog.Log
	queue   func(t *testing.T) runlog.Queue
	tickets kv.Store
	rates   kv.Store
	leases  kv.Store
	// settings guards tenants.
	settings sync.Mutex
	tenants  map[string]queue.Tenant
	nc       *nats.Conn
}

// inMemory is a rig whose dispatchers share one queue.
func inMemory() *rig {
	log := memory.New()
	return &rig{
		log:     log,
		queue:   func(*testing.T) runlog.Queue { return log },
		tickets: kvmemory.New(),
		rates:   kvmemory.New(),
		leases:  kvmemory.New(),
	}
}

// inNATS is a rig over an embedded server.
func inNATS(t *testing.T) *rig {
	t.Helper()
	nc := natsdtest.Connect(t)
	cfg := jetstream.DefaultConfig()
	log, err := jetstream.Open(t.Context(), nc, cfg)
	require.NoError(t, err)
	r := &rig{log: log, nc: nc, leases: kvmemory.New(), queue: func(t *testing.T) runlog.Queue {
		t.Helper()
		q, err := log.Queue(t.Context())
		require.NoError(t, err)
		t.Cleanup(q.Close)
		return q
	}}
	r.tickets, err = jetkv.Open(t.Context(), nc, jetkv.Config{Bucket: queue.Bucket, MarkerTTL: time.Second})
	require.NoError(t, err)
	r.rates, err = jetkv.Open(t.Context(), nc, jetkv.Config{Bucket: queue.RateBucket})
	require.NoError(t, err)
	return r
}

// start appends a run.
func (r *rig) start(t *testing.T, tenant, id string, s *wire.Schedule) {
	t.Helper()
	require.NoError(t, r.append(t.Context(), tenant, id, s))
}

func (r *rig) append(ctx context.Context, tenant, id string, s *wire.Schedule) error {
	body, err := json.Marshal(wire.RunRecord{RunID: id, WorkflowID: "wf", Owner: wire.Owner{Tenant: tenant}, Schedule: s})
	if err != nil {
		return err
	}
	_, err = r.log.Append(ctx, frame.NewStart(subject.Run{Tenant: tenant, WorkflowID: "wf", RunID: id}, body), 0)
	return err
}

// set changes the settings of a tenant.
func (r *rig) set(tenant string, to queue.Tenant) {
	r.settings.Lock()
	defer r.settings.Unlock()
	r.tenants = map[string]queue.Tenant{tenant: to}
}

func (r *rig) tenant(tenant string) queue.Tenant {
	r.settings.Lock()
	defer r.settings.Unlock()
	return r.tenants[tenant]
}

// gauge counts what is executed.
type gauge struct {
	mu    sync.Mutex
	now   map[string]int
	most  map[string]int
	times map[string]int
	at    map[string]time.Time
	order []string
}

func newGauge() *gauge {
	return &gauge{now: map[string]int{}, most: map[string]int{}, times: map[string]int{}, at: map[string]time.Time{}}
}

func (g *gauge) enter(f *frame.Frame) (leave func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	tenant, id := f.Run.Tenant, f.Run.RunID
	g.now[tenant]++
	g.most[tenant] = max(g.most[tenant], g.now[tenant])
	g.times[id]++
	g.at[id] = time.Now()
	g.order = append(g.order, id)
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.now[tenant]--
	}
}

func (g *gauge) ran(id string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.times[id]
}

func (g *gauge) distinct() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.times)
}

// hold executes runs until release is closed or the context ends, which hands them back.
func (g *gauge) hold(release <-chan struct{}) func(context.Context, runlog.Delivery) {
	return func(ctx context.Context, d runlog.Delivery) {
		defer g.enter(d.Frame())()
		select {
		case <-release:
			_ = d.Ack()
		case <-ctx.Done():
			stopped(ctx, d)
		}
	}
}

// brief executes runs for a moment.
func (g *gauge) brief(took time.Duration) func(context.Context, runlog.Delivery) {
	return func(ctx context.Context, d runlog.Delivery) {
		defer g.enter(d.Frame())()
		select {
		case <-time.After(took):
			_ = d.Ack()
		case <-ctx.Done():
			stopped(ctx, d)
		}
	}
}

// unparked is how many runs wait in the queue itself.
func (r *rig) unparked(t *testing.T, d *dispatcher) int {
	t.Helper()
	depth, err := d.Depth(t.Context())
	require.NoError(t, err)
	return depth.Waiting - depth.Parked
}

func ids(prefix string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("%s_%05d", prefix, i))
	}
	return out
}

// lossy is a queue whose first acknowledgements fail, as if the process had died before them.
type lossy struct {
	runlog.Queue
	mu   sync.Mutex
	left int
}

func (q *lossy) Next(ctx context.Context) (runlog.Delivery, error) {
	d, err := q.Queue.Next(ctx)
	if err != nil {
		return nil, err
	}
	return &lossyDelivery{d, q}, nil
}

type lossyDelivery struct {
	runlog.Delivery
	q *lossy
}

var errDied = errors.New("process died before the acknowledgement")

func (d *lossyDelivery) Ack() error {
	d.q.mu.Lock()
	defer d.q.mu.Unlock()
	if d.q.left > 0 {
		d.q.left--
		return errDied
	}
	return d.Delivery.Ack()
}
