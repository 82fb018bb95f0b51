package limit_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/settings"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
)

func limiter(t *testing.T, doc string, o limit.Observer) *limit.Limiter {
	t.Helper()
	all, err := limit.Parse([]byte(`{"providers":{"p":`+doc+`}}`), limit.Host{Providers: &settings.Names{Known: []string{"p"}}})
	require.NoError(t, err)
	return limit.NewLimiter(all, o, time.Now)
}

// trace starts calls one by one and keeps the order in which they are admitted, and when.
type trace struct {
	mu    sync.Mutex
	begin time.Time
	said  []string
}

func (tr *trace) call(ctx context.Context, l *limit.Limiter, c limit.Call, takes time.Duration, used int, name string) {
	c.Provider = "p"
	go func() {
		s, err := l.Acquire(ctx, c)
		tr.mu.Lock()
		at := time.Since(tr.begin).Round(time.Second)
		if err != nil {
			tr.said = append(tr.said, fmt.Sprintf("%s gone %s", name, at))
			tr.mu.Unlock()
			return
		}
		tr.said = append(tr.said, fmt.Sprintf("%s %s", name, at))
		tr.mu.Unlock()
		time.Sleep(takes) //nolint:forbidigo // in a bubble
		s.Release(limit.Outcome{Tokens: used})
	}()
	synctest.Wait()
}

func (tr *trace) list() []string {
	synctest.Wait()
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.said
}

func TestLimiter_LimitsConcurrencyAndTakesTenantsInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, tr := limiter(t, `{"maxConcurrent":1}`, nil), &trace{begin: time.Now()}
		for _, c := range []string{"a1", "a2", "a3", "b1", "b2", "c1"} {
			tr.call(t.Context(), l, limit.Call{Tenant: c[:1]}, time.Second, -1, c)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		require.Equal(t, []string{"a1 0s", "a2 1s", "b1 2s", "c1 3s", "a3 4s", "b2 5s"}, tr.list())
	})
}

func TestLimiter_LimitsRequestsPerMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, tr := limiter(t, `{"requestsPerMinute":12}`, nil), &trace{begin: time.Now()} // one in 5 s, two at once
		for i := range 5 {
			tr.call(t.Context(), l, limit.Call{Tenant: "a"}, 0, -1, fmt.Sprint(i))
		}
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		require.Equal(t, []string{"0 0s", "1 0s", "2 5s", "3 10s", "4 15s"}, tr.list())
	})
}

func TestLimiter_CorrectsTheEstimateOfTokens(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		used int
		want []string
	}{
		"as estimated":   {400, []string{"0 0s", "1 20s"}}, // 200 are left and 200 more come in 20 s
		"fewer":          {100, []string{"0 0s", "1 1s"}},
		"more":           {600, []string{"0 0s", "1 40s"}},
		"more than held": {1 << 40, []string{"0 0s", "1 40s"}},
		"not reported":   {-1, []string{"0 0s", "1 20s"}},
		"none":           {0, []string{"0 0s", "1 1s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, tr := limiter(t, `{"tokensPerMinute":600}`, nil), &trace{begin: time.Now()}
				tr.call(t.Context(), l, limit.Call{Tenant: "a", Tokens: 400}, time.Second, tc.used, "0")
				tr.call(t.Context(), l, limit.Call{Tenant: "a", Tokens: 400}, 0, -1, "1")
				time.Sleep(5 * time.Minute) //nolint:forbidigo // in a bubble
				require.Equal(t, tc.want, tr.list())
			})
		})
	}
}

func TestLimiter_LeavesTheQueueWhenTheCallersContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, tr := limiter(t, `{"maxConcurrent":1}`, nil), &trace{begin: time.Now()}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		tr.call(t.Context(), l, limit.Call{Tenant: "a"}, 10*time.Second, -1, "a1")
		tr.call(ctx, l, limit.Call{Tenant: "a"}, 0, -1, "a2")
		tr.call(t.Context(), l, limit.Call{Tenant: "a"}, 0, -1, "a3")
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		require.Equal(t, []string{"a1 0s", "a2 gone 2s", "a3 10s"}, tr.list())
	})
}

type counts struct {
	mu                    sync.Mutex
	waited                []time.Duration
	admitted, calls, most int
	waiting               int
}

func (c *counts) Queued(_ string, d time.Duration, admitted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waited = append(c.waited, d)
	if admitted {
		c.admitted++
	}
}

func (c *counts) InFlight(_ string, calls, waiting int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls, c.waiting, c.most = calls, waiting, max(c.most, calls)
}

func (c *counts) Holds(string, int) {}

func (c *counts) Limits(string, int, float64, float64) {}

func (c *counts) now() [2]int {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return [2]int{c.calls, c.waiting}
}

func TestLimiter_ReportsTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &counts{}
		l, tr := limiter(t, `{"maxConcurrent":2}`, c), &trace{begin: time.Now()}
		for i := range 4 {
			tr.call(t.Context(), l, limit.Call{Tenant: "a"}, 3*time.Second, -1, fmt.Sprint(i))
		}
		require.Equal(t, [2]int{2, 2}, c.now())
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		require.Equal(t, [2]int{0, 0}, c.now())
		require.Equal(t, []time.Duration{0, 0, 3 * time.Second, 3 * time.Second}, c.waited)
		require.Equal(t, 4, c.admitted)
		require.Equal(t, 2, c.most)
	})
}

func TestLimiter_WithoutSettingsAdmitsEverything(t *testing.T) {
	t.Parallel()
	l := limit.NewLimiter(nil, nil, time.Now)
	for range 1000 {
		_, err := l.Acquire(t.Context(), limit.Call{Provider: "p", Tenant: "a", Tokens: 1 << 30})
		require.NoError(t, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.Acquire(ctx, limit.Call{Provider: "p"})
	require.ErrorIs(t, err, context.Canceled)
}
