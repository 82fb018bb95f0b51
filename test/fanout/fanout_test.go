// Package fanout streams runs to thousands of clients and measures the cost for the gateway and the
// log.
package fanout

import (
	"context"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"waybill.dev/waybill/test/harness"
)

const (
	// many is the number of clients that a gateway must serve, few the number under -short.
	many, few = 5000, 300
	// perRun is the number of clients per run.
	perRun = 100
	// handful is the limit of NATS resources of all services, for any number of clients.
	handful = 24
	// replacing is how many of these may be in replacement at the time of a check.
	replacing = 3
	// perClient is the gateway's memory limit per client, in bytes.
	perClient = 128 << 10
	// watchers is the number of clients that watch a tenant's runs.
	watchers = 20
)

// clients is the number of clients that this process may open: a connection is a file.
func clients(t *testing.T) int {
	t.Helper()
	n := many
	if testing.Short() {
		n = few
	}
	var files syscall.Rlimit // the runtime has already raised the limit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files))
	if spare := int(files.Cur) - 1000; spare < n { //nolint:gosec // G115: far below 2^63
		t.Logf("%d clients instead of %d: this process may open %d files", spare, n, files.Cur)
		n = spare
	}
	return max(n/perRun, 2) * perRun
}

func TestFanOut_ThousandsFollowWithAHandfulOfConsumers(t *testing.T) {
	n := clients(t)
	b := startBroker(t)
	gateway := startHost(t, b)
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Minute)
	defer cancel()

	keys := []string{acme, beta}
	tenants := map[string]*harness.Client{acme: patient(gateway, acme), beta: patient(gateway, beta)}
	var runs []string // alternating tenants
	for i := range n / perRun {
		id, err := begin(ctx, tenants[keys[i%2]])
		require.NoError(t, err)
		runs = append(runs, id)
	}
	idle, lean := b.held(t), memory(t, gateway.PID)

	var (
		all   []*follower
		asked sync.WaitGroup
		slow  = make(chan struct{})
	)
	group, following := errgroup.WithContext(ctx)
	for i, run := range runs {
		for j := range perRun {
			f := &follower{client: tenants[keys[i%2]], run: run, leaves: -1, asked: asked.Done}
			switch j % 10 {
			case 0:
				f.leaves = 3 + j/10
			case 1:
				f.reads = slow
			}
			asked.Add(1)
			all = append(all, f)
			group.Go(func() error { return f.follow(following) })
		}
	}
	watched := map[string][]*watcher{}
	for i, key := range keys {
		for range watchers {
			asked.Add(1)
			w := &watcher{client: tenants[key], runs: (len(runs) + 1 - i) / 2, opened: asked.Done}
			watched[key] = append(watched[key], w)
			group.Go(func() error { return w.watch(following) })
		}
	}
	everybody := make(chan struct{})
	go func() { asked.Wait(); close(everybody) }()
	select {
	case <-everybody:
	case <-following.Done():
		t.Fatal(group.Wait())
	}
	// On a busy machine connections are replaced. nats.go leaves one whose handshake took too long to the
	// garbage collector, which the runtime starts after two minutes at the latest.
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, idle.connections, b.held(t).connections)
	}, 3*time.Minute, 200*time.Millisecond, "connections must not grow with clients")
	full, fat := b.held(t), memory(t, gateway.PID)
	t.Logf("%d clients: %+v before, %+v with them; the gateway held %d KiB, then %d KiB: %d KiB a client", n, idle, full, lean>>10, fat>>10, (fat-lean)/n>>10)
	require.InDelta(t, idle.consumers, full.consumers, replacing, "consumers must not grow with clients")
	require.InDelta(t, idle.subscriptions, full.subscriptions, replacing, "nor do subscriptions")
	require.LessOrEqual(t, full.consumers, handful)
	require.Less(t, fat-lean, n*perClient+(64<<20), "memory per client")

	for i, run := range runs {
		foreign := tenants[keys[(i+1)%2]]
		a, err := foreign.Do(ctx, http.MethodGet, "/v1/runs/"+run+"/events", "", "Accept", "text/event-stream")
		require.NoError(t, err)
		require.Equal(t, http.StatusNotFound, a.Status, "a tenant follows its own runs alone")
	}
	began := time.Now()
	for i, run := range runs {
		a, err := tenants[keys[i%2]].Do(ctx, http.MethodPost, "/v1/runs/"+run+"/interrupts/gate", `{"resumeValue":{"action":"accept"}}`)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, a.Status, "%s", a.Body)
	}
	for i, run := range runs {
		_, err := tenants[keys[i%2]].Finish(ctx, run)
		require.NoError(t, err)
	}
	close(slow) // they have to catch up with everything
	require.NoError(t, group.Wait())
	t.Logf("the rest of %d events came within %s", len(all)*len(all[0].got), time.Since(began).Round(time.Millisecond))

	for i, run := range runs {
		events, err := tenants[keys[i%2]].Finish(ctx, run)
		require.NoError(t, err)
		for _, f := range all[i*perRun : (i+1)*perRun] {
			require.NoError(t, f.check(events))
		}
	}
	for i, key := range keys {
		var own []string
		for j := i; j < len(runs); j += len(keys) {
			own = append(own, runs[j])
		}
		for _, w := range watched[key] {
			require.ElementsMatch(t, own, w.ended, "a watcher gets every run of its tenant, and no other")
		}
	}
}
