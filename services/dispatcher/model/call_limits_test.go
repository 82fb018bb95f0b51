package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/protocol/wire"
	"waybill.dev/waybill/services/dispatcher/model"
	"waybill.dev/waybill/services/dispatcher/node"
	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
)

// vendor is a provider implemented by a function.
type vendor func(ctx context.Context, req provider.Request) (provider.Result, error)

func (vendor) ID() string { return "vendor" }

func (v vendor) Call(ctx context.Context, req provider.Request, _ func(provider.Delta) error) (provider.Result, error) {
	return v(ctx, req)
}

// limited returns a loop with the settings of one provider. Jitter is always the whole window.
func limited(t *testing.T, settings string, v vendor) *model.Loop {
	t.Helper()
	all, err := limit.Parse([]byte(`{"providers":{"vendor":`+settings+`}}`), limit.Host{})
	require.NoError(t, err)
	reg, err := provider.NewRegistry(v)
	require.NoError(t, err)
	return model.New(model.Config{
		MaxAttempts: 1,
		Multiplier:  2,
		Providers:   all,
		Defaults:    model.Defaults{Provider: "vendor", Model: "m", MaxTokens: 100},
	}, model.Deps{
		Calls: model.Calls{
			Limiter: limit.NewLimiter(all, nil, time.Now),
			Jitter:  func(d time.Duration) time.Duration { return d },
		},
		Models:   reg,
		Schemas:  schemas{},
		Scrubber: func(string, string, bool) model.Scrubber { return plain{} },
		Clock:    time.Now,
	})
}

func askWithin(t *testing.T, l *model.Loop, config string, waits int) model.Result {
	t.Helper()
	return l.Run(t.Context(), model.Task{
		TypeID: node.TypeCallPrompt, Tenant: "acme", RunID: "run_1", Waits: waits,
		Input: node.Input{
			NodeID: "n",
			Config: json.RawMessage(config),
			Ports:  map[string]json.RawMessage{"messages": json.RawMessage(`[{"role":"user","content":"hello"}]`)},
		},
	}, &journal{accept: acceptAll})
}

func TestCapacity_ChoosesAGrowingPauseBeyondWhatTheVendorAsks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		asked time.Duration
		waits int
		want  time.Duration
	}{
		"first":            {0, 0, time.Second},
		"third":            {0, 2, 4 * time.Second},
		"hundredth":        {0, 99, 2 * time.Minute},
		"asked":            {30 * time.Second, 1, 32 * time.Second},
		"asked for a year": {365 * 24 * time.Hour, 0, 15*time.Minute + time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := limited(t, `{}`, func(context.Context, provider.Request) (provider.Result, error) {
				return provider.Result{}, &provider.Error{
					Code:       provider.CodeQuota,
					Message:    "slow down",
					Retryable:  true,
					Capacity:   true,
					RetryAfter: tc.asked,
				}
			})
			res := askWithin(t, l, `{"expectsStreaming":false}`, tc.waits)
			require.Equal(t, &wire.NodeError{
				Code:       "provider_quota_exhausted",
				Message:    "slow down",
				Retryable:  true,
				Capacity:   true,
				RetryAfter: tc.want,
				Details:    map[string]any{"provider": "vendor"},
			}, res.Err)
		})
	}
}

func TestTimeouts_AreTheNodesElseTheProvidersElseTheDefaults(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	for name, tc := range map[string]struct {
		settings, config string
		want             provider.Timeouts
		wrong            string
	}{
		"defaults":     {`{}`, `{}`, provider.Timeouts{Connect: 10 * time.Second, FirstByte: 10 * minute, Silence: 10 * minute, Call: 30 * minute}, ""},
		"provider's":   {`{"timeouts":{"connectMs":1000,"callMs":7200000}}`, `{}`, provider.Timeouts{Connect: time.Second, FirstByte: 10 * minute, Silence: 10 * minute, Call: 120 * minute}, ""},
		"node's":       {`{"timeouts":{"silenceMs":1000}}`, `{"timeouts":{"silenceMs":3600000,"firstByteMs":5}}`, provider.Timeouts{Connect: 10 * time.Second, FirstByte: 5 * time.Millisecond, Silence: 60 * minute, Call: 30 * minute}, ""},
		"node's, high": {`{}`, `{"timeouts":{"callMs":3600001}}`, provider.Timeouts{}, "/config/timeouts/callMs: 3600001; want milliseconds from 1 to 3600000"},
		"raised":       {`{"maxTimeoutMs":7200000}`, `{"timeouts":{"callMs":7200000}}`, provider.Timeouts{Connect: 10 * time.Second, FirstByte: 10 * minute, Silence: 10 * minute, Call: 120 * minute}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got provider.Timeouts
			l := limited(t, tc.settings, func(_ context.Context, req provider.Request) (provider.Result, error) {
				got = req.Timeouts
				return provider.Result{Text: "hi", Stop: provider.StopClean}, nil
			})
			res := askWithin(t, l, tc.config, 0)
			require.Equal(t, tc.want, got)
			if tc.wrong != "" {
				require.Equal(t, string(fault.ValidationError), res.Err.Code)
				require.Contains(t, res.Err.Message, tc.wrong)
			}
		})
	}
}

func TestTimeouts_TheWholeCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := limited(t, `{}`, func(ctx context.Context, _ provider.Request) (provider.Result, error) {
			<-ctx.Done()
			return provider.Result{}, ctx.Err()
		})
		began := time.Now()
		res := askWithin(t, l, `{"expectsStreaming":false,"timeouts":{"callMs":90000}}`, 0)
		require.Equal(t, 90*time.Second, time.Since(began))
		require.True(t, res.Err.Retryable)
		require.False(t, res.Err.Capacity, "the vendor may have executed the call")
		require.Contains(t, res.Err.Message, "limit call: 1m30s")
		require.Contains(t, res.Err.Message, "timeouts.callMs")
	})
}

// Time in the queue does not count against the call's time limit: the third call waits longer than
// that.
func TestLimiter_QueuesCallsInsteadOfFailingThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		flying, most := 0, 0
		l := limited(t, `{"maxConcurrent":1}`, func(ctx context.Context, _ provider.Request) (provider.Result, error) {
			mu.Lock()
			flying++
			most = max(most, flying)
			mu.Unlock()
			err := provider.Pause(ctx, time.Minute)
			mu.Lock()
			flying--
			mu.Unlock()
			return provider.Result{Text: "hi", Stop: provider.StopClean}, err
		})
		began := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				res := askWithin(t, l, `{"expectsStreaming":false,"timeouts":{"callMs":61000}}`, 0)
				if res.Err != nil || res.Interrupted != nil {
					t.Error(fmt.Sprint(res.Err, res.Interrupted))
				}
			})
		}
		wg.Wait()
		require.Equal(t, 3*time.Minute, time.Since(began))
		require.Equal(t, 1, most)
	})
}

// While a provider refuses calls for a long time, the node waits without a call. The vendor
// receives one call.
func TestHold_GivesTheRunAPauseWithoutACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		l := limited(t, `{}`, func(context.Context, provider.Request) (provider.Result, error) {
			calls++
			return provider.Result{}, &provider.Error{
				Code:       provider.CodeQuota,
				Message:    "slow down",
				Retryable:  true,
				Capacity:   true,
				RetryAfter: time.Minute,
			}
		})
		first := askWithin(t, l, `{"expectsStreaming":false}`, 0)
		require.Equal(t, time.Minute+time.Second, first.Err.RetryAfter)
		time.Sleep(20 * time.Second) //nolint:forbidigo // in a bubble
		second := askWithin(t, l, `{"expectsStreaming":false}`, 1)
		require.Equal(t, 1, calls)
		require.Equal(t, "provider_quota_exhausted", second.Err.Code)
		require.True(t, second.Err.Capacity && second.Err.Retryable)
		require.Contains(t, second.Err.Message, "no call is made")
		require.GreaterOrEqual(t, second.Err.RetryAfter, 42*time.Second)
		require.LessOrEqual(t, second.Err.RetryAfter, 48*time.Second)
		require.NotContains(t, second.Err.Message, "vendor")
		time.Sleep(second.Err.RetryAfter) //nolint:forbidigo // in a bubble
		require.Equal(t, time.Minute+4*time.Second, askWithin(t, l, `{"expectsStreaming":false}`, 2).Err.RetryAfter)
		require.Equal(t, 2, calls, "the next call follows the hold")
	})
}
