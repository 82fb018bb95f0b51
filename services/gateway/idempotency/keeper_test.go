package idempotency_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/internal/kv/memory"
	"waybill.dev/waybill/protocol/fault"
	"waybill.dev/waybill/services/gateway/idempotency"
)

// clock is a fake clock.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.UnixMilli(c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(d.Milliseconds()) }

func keeper() (*idempotency.Keeper, *clock) {
	c := &clock{}
	c.at.Store(1_700_000_000_000)
	return idempotency.New(memory.New(), c.now), c
}

var req = idempotency.Request{Tenant: "acme", Operation: "cancel", Key: "k", Digest: "d1"}

func answer(s string) func() ([]byte, error) { return func() ([]byte, error) { return []byte(s), nil } }

func never(t *testing.T) func() ([]byte, error) {
	t.Helper()
	return func() ([]byte, error) { t.Error("carried out again"); return nil, nil }
}

func TestDo_ReturnsTheFirstAnswer(t *testing.T) {
	t.Parallel()
	k, _ := keeper()
	got, replayed, err := k.Do(t.Context(), req, answer("one"))
	require.NoError(t, err)
	require.False(t, replayed)
	require.Equal(t, "one", string(got))
	got, replayed, err = k.Do(t.Context(), req, never(t))
	require.NoError(t, err)
	require.True(t, replayed)
	require.Equal(t, "one", string(got))
}

func TestDo_KeepsTenantsAndOperationsApart(t *testing.T) {
	t.Parallel()
	k, _ := keeper()
	_, _, err := k.Do(t.Context(), req, answer("one"))
	require.NoError(t, err)
	for _, other := range []idempotency.Request{
		{Tenant: "beta", Operation: "cancel", Key: "k", Digest: "d2"},
		{Tenant: "acme", Operation: "put", Key: "k", Digest: "d2"},
	} {
		got, replayed, err := k.Do(t.Context(), other, answer("two"))
		require.NoError(t, err)
		require.False(t, replayed)
		require.Equal(t, "two", string(got))
	}
}

// Mismatch is checked before in-flight (OpenWOP host contract §2.1).
func TestDo_RefusesAnotherRequestEvenWhileTheFirstRuns(t *testing.T) {
	t.Parallel()
	k, _ := keeper()
	other := req
	other.Digest = "d2"
	_, _, err := k.Do(t.Context(), req, func() ([]byte, error) {
		_, _, err := k.Do(t.Context(), other, never(t))
		require.Equal(t, fault.IdempotencyKeyMismatch, fault.CodeOf(err))
		_, _, err = k.Do(t.Context(), req, never(t))
		require.Equal(t, fault.IdempotencyInFlight, fault.CodeOf(err))
		return []byte("one"), nil
	})
	require.NoError(t, err)
	_, _, err = k.Do(t.Context(), other, never(t))
	require.Equal(t, fault.IdempotencyKeyMismatch, fault.CodeOf(err))
}

func TestDo_KeepsFinalFailuresAndRetriesTheRest(t *testing.T) {
	t.Parallel()
	cases := []struct {
		err  error
		kept bool
	}{
		{fault.New(fault.RunNotFound, "x"), true},
		{fault.New(fault.Conflict, "x"), true},
		{fault.New(fault.ValidationError, "x"), false},
		{fault.New(fault.Forbidden, "x"), false},
		{fault.New(fault.RateLimited, "x"), false},
		{fault.New(fault.ServiceUnavailable, "x"), false},
		{errors.New("boom"), false},
	}
	for _, c := range cases {
		t.Run(c.err.Error(), func(t *testing.T) {
			t.Parallel()
			k, _ := keeper()
			_, _, err := k.Do(t.Context(), req, func() ([]byte, error) { return nil, c.err })
			require.ErrorIs(t, err, c.err)
			again := false
			_, replayed, err := k.Do(t.Context(), req, func() ([]byte, error) { again = true; return []byte("ok"), nil })
			require.Equal(t, !c.kept, again)
			require.Equal(t, c.kept, replayed)
			if c.kept {
				require.Equal(t, fault.CodeOf(c.err), fault.CodeOf(err))
			}
		})
	}
}

// The process died in the middle: the lease lapses, and a retry takes over.
func TestDo_TakesALapsedRequestOver(t *testing.T) {
	t.Parallel()
	k, c := keeper()
	require.Panics(t, func() {
		_, _, _ = k.Do(t.Context(), req, func() ([]byte, error) { panic("died") })
	})
	_, _, err := k.Do(t.Context(), req, never(t))
	require.Equal(t, fault.IdempotencyInFlight, fault.CodeOf(err))
	c.advance(2 * time.Minute)
	got, _, err := k.Do(t.Context(), req, answer("two"))
	require.NoError(t, err)
	require.Equal(t, "two", string(got))
}

func TestDo_ExecutesOnceForTwentyRacers(t *testing.T) {
	t.Parallel()
	k, _ := keeper()
	var done atomic.Int32
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for {
				got, _, err := k.Do(t.Context(), req, func() ([]byte, error) { done.Add(1); return []byte("one"), nil })
				if fault.CodeOf(err) == fault.IdempotencyInFlight {
					continue
				}
				if err != nil || string(got) != "one" {
					t.Errorf("got %q, %v", got, err)
				}
				return
			}
		})
	}
	wg.Wait()
	require.Equal(t, int32(1), done.Load())
}

func TestCheckKey_AcceptsHeaderValues(t *testing.T) {
	t.Parallel()
	require.NoError(t, idempotency.CheckKey("a-1_~!"))
	require.NoError(t, idempotency.CheckKey(strings.Repeat("k", 255)))
	for _, bad := range []string{"", strings.Repeat("k", 256), "a b", "ü", "a\n"} {
		require.Equal(t, fault.ValidationError, fault.CodeOf(idempotency.CheckKey(bad)), "%q", bad)
	}
}
