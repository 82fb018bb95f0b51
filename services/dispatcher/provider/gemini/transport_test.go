package gemini_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/gemini"
	"waybill.dev/waybill/services/dispatcher/provider/providertest"
	double "waybill.dev/waybill/test/double/gemini"
)

func TestCall_IsUnavailableWhenNobodyListens(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	p, err := gemini.New(gemini.Config{BaseURL: "http://" + address, APIKey: key})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	_, err = p.Call(t.Context(), ask(), nil)
	e, ok := provider.As(err)
	require.True(t, ok)
	require.Equal(t, provider.CodeUnavailable, e.Code)
	require.True(t, e.Retryable)
	require.NotContains(t, e.Cause.Error(), "/v1beta")
	require.NotContains(t, e.Cause.Error(), "hush")
}

func TestCall_GivesUpOnSilence(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]double.Reply{
		"before the answer": {Wait: time.Minute},
		"in the answer":     {Pieces: []string{"a", "b"}, End: double.EndStall},
	} {
		e := newRig(t, func(c *gemini.Config) { c.Timeout = 100 * time.Millisecond }).fail(t, ask(), reply)
		require.Equal(t, provider.CodeUnavailable, e.Code, name)
		require.True(t, e.Retryable, name)
	}
}

func TestCall_ReturnsTheContextsErrorAtItsDeadline(t *testing.T) {
	t.Parallel()
	for _, reply := range []double.Reply{{Wait: time.Minute}, {Pieces: []string{"a", "b"}, End: double.EndStall}} {
		r := newRig(t, nil)
		r.server.Enqueue(reply)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := r.Call(ctx, ask(), nil)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, isError := provider.As(err)
		require.False(t, isError, "the caller's deadline is not the provider's fault")
	}
}

func TestCall_RefusesModelsThatAreNotConfigured(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *gemini.Config) { c.Models = []string{"small", "large"} })
	e := r.fail(t, ask())
	require.Equal(t, provider.CodeModelNotSupported, e.Code)
	require.Contains(t, e.Message, "small, large")
	require.Empty(t, r.server.Requests())
}

func TestCall_NamesWhereTheKeyIsSet(t *testing.T) {
	t.Parallel()
	named := newRig(t, func(c *gemini.Config) { c.APIKey, c.KeyName = "hush-other", "WAYBILL_PROVIDER_X_KEY" })
	require.Contains(t, named.fail(t, ask()).Message, "WAYBILL_PROVIDER_X_KEY")
	none := newRig(t, func(c *gemini.Config) { c.APIKey = "" })
	e := none.fail(t, ask())
	require.Contains(t, e.Message, "the API key of provider gemini")
	require.Equal(t, 403, e.Status)
}

func TestCall_BoundsHowLongAServerMakesOneWait(t *testing.T) {
	t.Parallel()
	for delay, want := range map[string]time.Duration{
		"7s":     7 * time.Second,
		"0.25s":  250 * time.Millisecond,
		"-1s":    0,
		"soon":   0,
		"s":      0,
		"NaNs":   0,
		"1e300s": 24 * time.Hour,
		"7":      0,
	} {
		e := newRig(t, nil).fail(t, ask(), double.RateLimited("PerMinute", delay))
		require.Equal(t, want, e.RetryAfter, delay)
	}
}

func TestCall_ReusesItsConnection(t *testing.T) {
	t.Parallel()
	answer := `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]},"finishReason":"STOP"}]}` + "\r\n\r\n"
	providertest.ReusesItsConnection(t, providertest.Streaming{Answer: answer}, ask(), func(url string) (provider.Provider, error) {
		return gemini.New(gemini.Config{BaseURL: url, APIKey: key})
	})
}
