package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv"
	kvmemory "waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/internal/runlog/memory"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/gateway/egress"
	"waybill.dev/waybill/services/gateway/webhook"
)

// synced is a store whose writes reach a disk.
type synced struct{ kv.Store }

const syncTime = 2 * time.Millisecond

func (s synced) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	select {
	case <-time.After(syncTime):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return s.Store.Update(ctx, key, value, revision)
}

// deaf accepts connections and never answers.
func deaf(t *testing.T) (url string) {
	t.Helper()
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var open []net.Conn
		for {
			c, err := lis.Accept()
			if err != nil {
				break
			}
			open = append(open, c)
		}
		for _, c := range open {
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = lis.Close(); <-done })
	return "http://" + lis.Addr().String()
}

// A hundred webhooks of one tenant whose receivers never answer, and many runs of it, do not delay
// the deliveries of another tenant, even if more frames wait than the feed keeps.
func TestFeed_TenantsDoNotDelayEachOther(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]webhook.FeedLimits{
		"kept":                     webhook.DefaultPolicy().Feed,
		"above the tenant's limit": {Frames: 1000, PerTenant: 10},
		"above every limit":        {Frames: 10, PerTenant: 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tenantsDoNotDelayEachOther(t, limits)
		})
	}
}

func tenantsDoNotDelayEachOther(t *testing.T, limits webhook.FeedLimits) {
	t.Helper()
	const hooks, runs, most = 100, 50, time.Second
	r := newRig(t)
	log, lanes := memory.New(), kvmemory.New()
	r.log = log
	policy := webhook.DefaultPolicy()
	policy.Feed = limits
	svc, err := webhook.New(webhook.Config{
		HostKey: hostKey, Delivery: policy, Egress: egress.Policy{AllowPrivate: true},
	}, webhook.Deps{
		Log: log, Subscriptions: kvmemory.New(), Lanes: synced{lanes}, Dead: kvmemory.New(),
		Clock: time.Now, Questions: r.ask, Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = svc.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })

	dead := deaf(t)
	for i := range hooks {
		_, err := svc.Register(t.Context(), "greedy", fmt.Sprintf("%s/%d", dead, i), []wire.EventType{logged}, nil)
		require.NoError(t, err)
	}
	arrived := make(chan time.Time, 100)
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var doc struct{ RunID string }
		if json.NewDecoder(req.Body).Decode(&doc) == nil {
			arrived <- time.Now()
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(to.Close)
	_, err = svc.Register(t.Context(), "other", to.URL, []wire.EventType{logged}, nil)
	require.NoError(t, err)

	of := func(tenant string) func(*wire.RunRecord) {
		return func(rec *wire.RunRecord) { rec.Owner.Tenant = tenant }
	}
	for i := range runs {
		id := fmt.Sprintf("run_%d", i)
		r.run(id, of("greedy"))
		r.say(id, logged)
	}
	for i := range 5 {
		id := fmt.Sprintf("run_other_%d", i)
		r.run(id, of("other"))
		began := time.Now()
		r.say(id, logged)
		select {
		case at := <-arrived:
			require.Less(t, at.Sub(began), most, "delivery %d", i)
		case <-time.After(30 * time.Second):
			require.Fail(t, "it did not arrive")
		}
		r.say(id, logged)
		<-arrived
	}
	require.Eventually(t, func() bool {
		found, err := kv.List(t.Context(), lanes, "lane.greedy.")
		return err == nil && len(found) == hooks*runs
	}, time.Minute, 50*time.Millisecond, "the other tenant's deliveries are kept")
}

// A tenant whose outbox is stuck has a position of its own: after a crash its frames are read from
// there, and those of others are not offered again.
func TestFeed_TenantsBehindSurviveACrash(t *testing.T) {
	t.Parallel()
	bubble(t, func(r *rig) {
		const greedy, other = 20, 5
		free := make(chan struct{})
		r.wait = func(ctx context.Context, key string) {
			if strings.HasPrefix(key, "lane.greedy.") {
				select {
				case <-free:
				case <-ctx.Done():
				}
			}
		}
		r.policy.Feed = webhook.FeedLimits{Frames: 4, PerTenant: 2}
		now := &power{}
		stop := r.startOn(now)
		r.tagged("greedy", nil, logged)
		e := r.tagged("other", nil, logged)
		want := map[string]int{}
		add := func(tenant string, n int) {
			for range n {
				id := fmt.Sprintf("run_%s_%d", tenant, len(want))
				r.run(id, func(rec *wire.RunRecord) { rec.Owner.Tenant = tenant })
				r.say(id, logged)
				want[id+"/0"] = 1
			}
		}
		add("greedy", greedy)
		add("other", other)
		r.settle()
		require.Len(t, r.to.got(), other, "the other tenant's deliveries do not wait")
		r.pass(10 * time.Second)
		r.drained(e)
		require.NotContains(t, dumper{r.lanes}.dump(), "lane.other.", "finished lanes are not kept for others")

		now.off.Store(true)
		stop()
		close(free)
		r.start()
		add("other", other)
		r.pass(minute)
		got := map[string]int{}
		for _, id := range r.to.got() {
			got[id]++
		}
		require.Equal(t, want, got)
		require.NotContains(t, dumper{r.lanes}.dump(), "lane.")
	})
}
