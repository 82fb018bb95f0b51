package compat_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"waybill.dev/waybill/services/dispatcher/provider"
	"waybill.dev/waybill/services/dispatcher/provider/compat"
	"waybill.dev/waybill/services/dispatcher/provider/providertest"
	"waybill.dev/waybill/test/double/openaicompat"
)

func TestCall_IsUnavailableWhenNobodyListens(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	p, err := compat.New(compat.Config{BaseURL: "http://" + address + "/v1", APIKey: key})
	require.NoError(t, err)
	t.Cleanup(p.Close)
	_, err = p.Call(t.Context(), ask(), nil)
	e, ok := provider.As(err)
	require.True(t, ok)
	require.Equal(t, provider.CodeUnavailable, e.Code)
	require.True(t, e.Retryable)
	require.NotContains(t, e.Cause.Error(), "/v1")
}

func TestCall_GivesUpOnSilence(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]openaicompat.Reply{
		"before the answer": {Wait: time.Minute},
		"in the answer":     {Pieces: []string{"a", "b"}, End: openaicompat.EndStall},
	} {
		e := newRig(t, func(c *compat.Config) { c.Timeout = 100 * time.Millisecond }).fail(t, reply)
		require.Equal(t, provider.CodeUnavailable, e.Code, name)
		require.True(t, e.Retryable, name)
	}
}

// A slow answer is not a silent one: the timeout is no bound of the whole call.
func TestCall_WaitsForASlowAnswer(t *testing.T) {
	t.Parallel()
	// The silence between two pieces is a tenth of the timeout: a busy machine
	// must not make it one.
	const silence = 3 * time.Second
	r := newRig(t, func(c *compat.Config) { c.Timeout = silence })
	begin := time.Now()
	res, _ := r.call(t, ask(), openaicompat.Reply{
		Pieces:   strings.Split(strings.Repeat("x", 12), ""),
		Interval: silence / 10,
	})
	require.Equal(t, strings.Repeat("x", 12), res.Text)
	require.Greater(t, time.Since(begin), silence)
}

func TestCall_ReturnsTheContextsErrorAtItsDeadline(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.server.Enqueue(openaicompat.Reply{Wait: time.Minute})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := r.Call(ctx, ask(), nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, isError := provider.As(err)
	require.False(t, isError, "the caller's deadline is not the provider's fault")
}

func TestCall_BoundsTheAnswer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED, large, and the code under test starts no goroutine: run without -short")
	}
	half := strings.Repeat("x", provider.MaxAnswerBytes/2+1)
	for name, reply := range map[string]openaicompat.Reply{
		"text":      {Pieces: []string{half, half}},
		"refusal":   {Refusal: half + " " + half},
		"arguments": {ToolCalls: []openaicompat.ToolCall{{Name: "f", Arguments: half + half}}},
		"together":  {Pieces: []string{half}, Refusal: half},
	} {
		require.Equal(t, provider.CodeContentTooLong, newRig(t, nil).fail(t, reply).Code, name)
	}
}

// An error's body is read as far as an error goes, and not for ever.
func TestCall_ReadsOnlySoMuchOfAnError(t *testing.T) {
	t.Parallel()
	e := newRig(t, nil).fail(t, openaicompat.Reply{Status: 400, Message: strings.Repeat("vendor says ", 1<<20)})
	require.Equal(t, 400, e.Status)
	require.Equal(t, provider.CodeInvalidRequest, e.Code)
}

func TestCall_RefusesModelsThatAreNotConfigured(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(c *compat.Config) { c.Models = []string{"small", "large"} })
	e := r.fail(t)
	require.Equal(t, provider.CodeModelNotSupported, e.Code)
	require.Contains(t, e.Message, "small, large")
	require.Empty(t, r.server.Requests())
}

func TestCall_ReusesItsConnection(t *testing.T) {
	t.Parallel()
	answer := `data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	for name, early := range map[string]bool{"whose stream has ended": false, "whose stream ends after the answer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			providertest.ReusesItsConnection(t, providertest.Streaming{Answer: answer, Early: early}, ask(), func(url string) (provider.Provider, error) {
				return compat.New(compat.Config{BaseURL: url})
			})
		})
	}
}

// A server that has said all and goes on is left, and so is one that never ends its stream.
func TestCall_LeavesAStreamThatGoesOn(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"silent": "", "talking": ": ping\n\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := make(chan struct{})
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(left)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write([]byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"))
				for r.Context().Err() == nil && more != "" {
					_, _ = w.Write([]byte(more))
				}
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}))
			t.Cleanup(s.Close)
			p, err := compat.New(compat.Config{BaseURL: s.URL})
			require.NoError(t, err)
			t.Cleanup(p.Close)
			res, err := p.Call(t.Context(), ask(), nil)
			require.NoError(t, err)
			require.Equal(t, "a", res.Text)
			<-left
		})
	}
}
