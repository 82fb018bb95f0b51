package limit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/limit"
)

const (
	// jittered is the largest random part of a hold of up to ten seconds.
	jittered = 1100 * time.Millisecond
	// longest is the longest hold.
	longest = 15*time.Minute + 5*time.Second
)

func refuse(after time.Duration) *provider.Error {
	return &provider.Error{Code: provider.CodeQuota, Capacity: true, Retryable: true, RetryAfter: after}
}

// double is a vendor that notes when it is called.
type double struct {
	*limit.Limiter

	// answer is how long a call takes and how it is refused.
	answer func(n int) (time.Duration, *provider.Error)

	begin time.Time

	mu sync.Mutex // guards what follows
	record
}

// record is what became of the calls.
type record struct {
	called []time.Duration
	names  []string
	away   []*limit.HeldError
	gone   int
}

func vendor(t *testing.T, settings string, answer func(n int) (time.Duration, *provider.Error)) *double {
	return &double{Limiter: limiter(t, settings, nil), answer: answer, begin: time.Now()}
}

// call makes a call and returns when it waits or was made.
func (d *double) call(ctx context.Context, name string, c limit.Call) {
	go func() {
		c.Provider = "p"
		s, err := d.Acquire(ctx, c)
		d.mu.Lock()
		if err != nil {
			if held, ok := errors.AsType[*limit.HeldError](err); ok {
				d.away = append(d.away, held)
			} else {
				d.gone++
			}
			d.mu.Unlock()
			return
		}
		d.called, d.names = append(d.called, time.Since(d.begin)), append(d.names, name)
		takes, refused := d.answer(len(d.called))
		d.mu.Unlock()
		aborted := provider.Pause(ctx, takes) != nil
		s.Release(limit.Outcome{Tokens: -1, Refused: refused, Aborted: aborted})
	}()
	synctest.Wait()
}

func (d *double) calls(ctx context.Context, n int) {
	for i := range n {
		d.call(ctx, fmt.Sprint(i), limit.Call{Tenant: fmt.Sprint(i % 3)})
	}
}

func (d *double) seen() record {
	synctest.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	return record{slices.Clone(d.called), slices.Clone(d.names), slices.Clone(d.away), d.gone}
}

func (d *double) count() int { return len(d.seen().called) }

func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble
	synctest.Wait()
}

// refusing refuses the first calls.
func refusing(after ...time.Duration) func(int) (time.Duration, *provider.Error) {
	return func(n int) (time.Duration, *provider.Error) {
		if n <= len(after) {
			return 0, refuse(after[n-1])
		}
		return time.Second, nil
	}
}

func TestHold_OneCallProbesThenTheOthersFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := vendor(t, `{}`, refusing(5*time.Second, 3*time.Second))
		d.calls(t.Context(), 11)
		pass(5*time.Second - time.Nanosecond)
		require.Equal(t, 1, d.count(), "Retry-After is kept")
		pass(jittered)
		require.Equal(t, 2, d.count(), "one probe, which is refused")
		pass(3*time.Second - jittered - time.Nanosecond)
		require.Equal(t, 2, d.count())
		pass(900 * time.Millisecond)
		require.Equal(t, 3, d.count(), "one probe, which is answered after a second")
		pass(2 * time.Second)
		require.Equal(t, 11, d.count())
		require.Equal(t, d.seen().called[2]+time.Second, d.seen().called[3])
		require.Equal(t, d.seen().called[3], d.seen().called[10])
		d.calls(t.Context(), 5)
		require.Equal(t, 16, d.count(), "the hold is over")
		pass(time.Minute)
	})
}

// A call that has another model to go to waits for no hold, neither a new one nor that of a refused probe.
func TestHold_AnImpatientCallDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := vendor(t, `{}`, refusing(2*time.Second, 2*time.Second))
		d.calls(t.Context(), 1)
		hurried := limit.Call{Tenant: "t", Impatient: true}
		d.call(t.Context(), "hurried", hurried)
		require.Len(t, d.seen().away, 1, "2 s are too long")
		require.Positive(t, d.seen().away[0].Left)
		pass(3 * time.Second)
		d.call(t.Context(), "the probe", hurried)
		require.Equal(t, 2, d.count(), "the hold is over")
		d.call(t.Context(), "after it", hurried)
		require.Len(t, d.seen().away, 2, "the probe was refused")
		pass(3 * time.Second)
		d.call(t.Context(), "answered", hurried)
		require.Equal(t, 3, d.count())
		pass(time.Minute)
	})
}

// An answer may take minutes: the others do not wait for it.
func TestHold_OthersFollowAProbeThatIsNotRefusedSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := vendor(t, `{}`, func(n int) (time.Duration, *provider.Error) {
			if n == 1 {
				return 0, refuse(time.Second)
			}
			return 10 * time.Minute, nil
		})
		d.calls(t.Context(), 4)
		pass(2 * time.Second)
		require.Equal(t, 2, d.count())
		pass(5 * time.Second)
		require.Equal(t, 4, d.count())
		require.Equal(t, d.seen().called[1]+5*time.Second, d.seen().called[3])
		pass(time.Hour)
	})
}

// Calls do not use a slot for a long hold: they are turned away without a call.
func TestHold_TurnsCallsAwayThatWouldWaitForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := vendor(t, `{"maxConcurrent":1}`, refusing(time.Minute))
		d.calls(t.Context(), 4)
		require.Equal(t, 1, d.count())
		require.Len(t, d.seen().away, 3)
		pass(30 * time.Second)
		d.calls(t.Context(), 1)
		require.Len(t, d.seen().away, 4)
		require.Equal(t, provider.CodeQuota, d.seen().away[3].Code)
		require.InDelta(t, 32*time.Second, d.seen().away[3].Left, float64(3*time.Second))
		pass(25 * time.Second)
		d.calls(t.Context(), 1)
		require.Len(t, d.seen().away, 4, "the end is near")
		require.Equal(t, 1, d.count())
		pass(15 * time.Second)
		require.Equal(t, 2, d.count())
		require.Zero(t, d.seen().gone)
	})
}

func TestHold_NeverOutlivesItsBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := vendor(t, `{}`, refusing(10*365*24*time.Hour))
		d.calls(t.Context(), 2)
		require.LessOrEqual(t, d.seen().away[0].Left, longest)
		require.GreaterOrEqual(t, d.seen().away[0].Left, 15*time.Minute)
		pass(longest)
		d.calls(t.Context(), 1)
		require.Equal(t, 2, d.count())
		pass(time.Minute)
	})
}

// A vendor that goes on refusing holds no call for ever, with the time that it names or without.
func TestHold_CallsWaitForAFewProbesOnly(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			d := vendor(t, `{}`, func(int) (time.Duration, *provider.Error) { return 0, refuse(after) })
			d.calls(t.Context(), 20)
			pass(20 * time.Second)
			made := d.count()
			require.LessOrEqual(t, made, 6)
			require.GreaterOrEqual(t, made, 3)
			require.Len(t, d.seen().away, 20-made)
			for i := range made - 1 { // 1 s, then twice as much each time
				least := time.Second << i / 2
				require.GreaterOrEqual(t, d.seen().called[i+1]-d.seen().called[i], max(after, min(least, 5*time.Second)))
			}
		})
	}
}

func TestHold_ConcernsCallsOfTheSameModelAndCredential(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := vendor(t, `{"maxConcurrent":1}`, refusing(5*time.Second))
		mine := limit.Call{Tenant: "a", Model: "m", Credential: "key-a"}
		d.call(t.Context(), "refused", mine)
		d.call(t.Context(), "held", mine)
		for name, c := range map[string]limit.Call{
			"other model": {Tenant: "a", Model: "n", Credential: "key-a"},
			"other key":   {Tenant: "b", Model: "m", Credential: "key-b"},
			"host's key":  {Tenant: "a", Model: "m"},
		} {
			d.call(t.Context(), name, c)
		}
		pass(4 * time.Second) // one after the other, past the held one
		require.ElementsMatch(t, []string{"refused", "other model", "other key", "host's key"}, d.seen().names)
		pass(4 * time.Second)
		require.Equal(t, "held", d.seen().names[4])
	})
}

func TestHold_EndsForACallThatIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := vendor(t, `{}`, func(n int) (time.Duration, *provider.Error) {
			if n == 1 {
				return 0, refuse(5 * time.Second)
			}
			return 3 * time.Second, nil
		})
		d.call(t.Context(), "first", limit.Call{Tenant: "a"})
		parked, cancelParked := context.WithCancel(t.Context())
		probe, cancelProbe := context.WithCancel(t.Context())
		d.call(parked, "parked", limit.Call{Tenant: "a"})
		d.call(probe, "probe", limit.Call{Tenant: "a"})
		d.call(t.Context(), "second probe", limit.Call{Tenant: "a"})
		d.call(t.Context(), "last", limit.Call{Tenant: "a"})
		pass(time.Second)
		cancelParked()
		synctest.Wait()
		require.Equal(t, 1, d.seen().gone, "immediately")
		pass(5 * time.Second)
		require.Equal(t, []string{"first", "probe"}, d.seen().names)
		cancelProbe()
		synctest.Wait()
		require.Equal(t, []string{"first", "probe", "second probe"}, d.seen().names, "the outcome of the first is unknown")
		pass(3 * time.Second)
		require.Equal(t, []string{"first", "probe", "second probe", "last"}, d.seen().names)
		pass(time.Minute)
	})
}

// A probe that waits for room and is cancelled leaves its place to another one.
func TestHold_ProbesAgainForAProbeThatLeavesTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := vendor(t, `{"maxConcurrent":1}`, func(n int) (time.Duration, *provider.Error) {
			if n == 1 {
				return 0, refuse(time.Second)
			}
			return 20 * time.Second, nil
		})
		d.call(t.Context(), "refused", limit.Call{Tenant: "a"})
		d.call(t.Context(), "other model", limit.Call{Tenant: "a", Model: "n"})
		ctx, cancel := context.WithCancel(t.Context())
		d.call(ctx, "probe", limit.Call{Tenant: "a"})
		d.call(t.Context(), "next", limit.Call{Tenant: "a"})
		pass(10 * time.Second)
		cancel()
		pass(15 * time.Second)
		require.Equal(t, []string{"refused", "other model", "next"}, d.seen().names)
		pass(time.Minute)
	})
}

// A server that failed once and names no time is called by the others.
func TestHold_NeedsARateLimitOrATime(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refused *provider.Error
		held    bool
	}{
		"503": {&provider.Error{Code: provider.CodeUnavailable, Capacity: true, Status: 503}, false},
		"503 with Retry-After": {
			&provider.Error{Code: provider.CodeUnavailable, Capacity: true, Status: 503, RetryAfter: time.Second},
			true,
		},
		"429": {&provider.Error{Code: provider.CodeQuota, Capacity: true, Status: 429}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := vendor(t, `{}`, func(n int) (time.Duration, *provider.Error) {
					if n == 1 {
						return 0, tc.refused
					}
					return time.Second, nil
				})
				d.calls(t.Context(), 3)
				want := 3
				if tc.held {
					want = 1
				}
				require.Equal(t, want, d.count())
				pass(4 * time.Second)
				require.Equal(t, 3, d.count())
				pass(time.Minute)
			})
		})
	}
}

// Calls that were in flight together and are refused together are one refusal.
func TestHold_ManyRefusalsHoldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := vendor(t, `{}`, func(n int) (time.Duration, *provider.Error) {
			if n <= 50 {
				return time.Duration(n) * time.Millisecond, refuse(0)
			}
			return time.Second, nil
		})
		d.calls(t.Context(), 50)
		pass(50 * time.Millisecond)
		d.calls(t.Context(), 10)
		require.Equal(t, 50, d.count())
		pass(1100 * time.Millisecond)
		require.Equal(t, 51, d.count())
		require.True(t, slices.IsSorted(d.seen().called))
		pass(time.Minute)
		require.Equal(t, 60, d.count())
	})
}

// Calls that were turned away return at different times: the first one after the hold is a probe.
func TestHold_TheFirstCallAfterItIsAProbe(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := vendor(t, `{}`, refusing(5*time.Second))
		d.calls(t.Context(), 1)
		pass(time.Minute)
		d.calls(t.Context(), 4)
		require.Equal(t, 2, d.count())
		pass(time.Second)
		require.Equal(t, 5, d.count())
		pass(time.Minute)
	})
}
